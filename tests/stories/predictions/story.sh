# A team scores predictions on a holdout that it will ask again; ids have leading zeros.
quiltwork holdout create study --train train.csv --holdout held.csv --id id --target label --threshold 0.05 --noise 0.01 --budget 10
quiltwork holdout ask study --predictions mine.csv --label "first model"
quiltwork holdout transcript study --report report.html
