# A utility releases how eight households use power: semicolons, decimal commas, German dates and
# letters, gaps, and a week with a day of 23 hours.
quiltwork belief make --states low,medium,high --lasting 3h,1h,45min --every 15min --sure 0.03 -o belief.json
quiltwork release lastgang.csv --value "Leistung (kW)" --subject Zähler --time Zeitpunkt --timezone Europe/Berlin --edges 0.5,2 --labels low,medium,high --belief belief.json --epsilon 1
quiltwork release lastgang.csv --value "Leistung (kW)" --subject Zähler --time Zeitpunkt --timezone Europe/Berlin --edges 0.5,2 --labels low,medium,high --belief belief.json --epsilon 1 --missing public --na n/a --report report.html
