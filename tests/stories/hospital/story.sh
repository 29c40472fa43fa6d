# Three clinics publish one table; postal codes begin with zeros, and some diagnoses are codes.
quiltwork anonymize patients.csv --provider clinic --quasi zip,age --sensitive diagnosis --k 5 --l 2 -o published.csv --report report.html
