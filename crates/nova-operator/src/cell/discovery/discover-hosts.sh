# Maps the hosts of the cell that has the given name in nova, or of all cells when that is not one
# cell: another cell whose database does not answer would end the discovery of all.
config=$1 name=$2
cells=$(nova-manage --config-dir "$config" cell_v2 list_cells) || {
  echo "$cells"
  exit 1
}
count=0 uuid=
while IFS='| ' read -r _ cell id _; do
  if [ "$cell" = "$name" ]; then
    count=$((count + 1)) uuid=$id
  fi
done <<CELLS
$cells
CELLS
[ "$count" = 1 ] || uuid=
exec nova-manage --config-dir "$config" cell_v2 discover_hosts --by-service ${uuid:+--cell_uuid "$uuid"}
