# Six volunteers wore trackers, which lost some minutes. How much time went into what?
quiltwork belief make --states rest,walk,run --lasting 30min,8min,5min --every 1min --sure 0.02 -o belief.json
quiltwork release export.csv --value Activity --time Timestamp --subject User --belief belief.json --epsilon 1
quiltwork release export.csv --value Activity --time Timestamp --subject User --belief belief.json --epsilon 1 --missing public --report report.html
