# Writes those of the given hosts that nova still maps to a file, one a line.
config=$1 result=$2
shift 2
table=$(nova-manage --config-dir "$config" cell_v2 list_hosts) || {
  echo "$table"
  exit 1
}
# The last column of each row, of which the first is the header; names of hosts have no spaces.
is_table= mapped=
while IFS= read -r row; do
  case $row in
    '|'*'|') ;;
    *) continue ;;
  esac
  row=${row%|}
  name=${row##*|}
  name=${name#"${name%%[! ]*}"}
  name=${name%"${name##*[! ]}"}
  if [ -z "$is_table" ]; then
    [ "$name" = Hostname ] || break
    is_table=yes
  else
    case " $* " in
      *" $name "*) mapped="$mapped$name
" ;;
    esac
  fi
done <<TABLE
$table
TABLE
[ "$is_table" ] || {
  echo "$table"
  echo "nova-manage cell_v2 list_hosts has printed no table of hosts"
  exit 1
}
printf %s "$mapped" >"$result"
