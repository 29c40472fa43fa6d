# A shop counts what customers order. Some order often: one has more than forty rows.
quiltwork count orders.csv --by product --subject customer --max-rows 3 --epsilon 1
quiltwork count orders.csv --by product --categories product=@products.txt --subject customer --max-rows 3 --epsilon 1 --report report.html
