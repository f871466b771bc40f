#!/bin/sh
# Check one payment file. Status 0: every row is a match. Usage: nightly.sh FILE [OPTION...]
cd "$(dirname "$0")" || exit 74
unset PYTHONPATH PYTHONHOME  # use only the modules that precheck was installed with
[ $# -gt 0 ] || { echo "nightly.sh: no payment file; usage: nightly.sh FILE [OPTION...]" >&2; exit 2; }
file=$1
shift
# The folder is named after the file's date and contents: a second file of that day gets its own folder. An unfinished
# folder of the same contents is resumed, whatever the date of the file, if it is not older than --reuse-max-age.
days=$(printf '%s ' "$@" | sed -n 's/.*--reuse-max-age[ =]\([0-9]*\)d.*/\1/p')
{ sum=$(cksum <"$file" | cut -d ' ' -f 1); } 2>/dev/null  # precheck reports a missing file
out=checked/$(date -r "$file" +%F 2>/dev/null)-$sum
if [ -n "$sum" ] && [ ! -e "$out" ]; then
  for old in $(find checked -maxdepth 1 -name "????-??-??-$sum" -mtime "-${days:-30}" 2>/dev/null | sort -r); do
    grep -q '"complete": *true' "$old/summary.json" 2>/dev/null && continue
    echo "$file: resuming the unfinished check in $old"
    out=$old
    break
  done
fi
precheck run "$file" --profile production --out "$out" --quiet \
    --fail-on no_match --fail-on close_match --fail-on not_possible --fail-on rejected "$@"
status=$?
case $status in
  0) echo "$file: every row is a match" ;;
  1) echo "$file: review the rows of $out/outcomes.csv whose check_outcome is not match" ;;
  75 | 129 | 130 | 143 | 152) echo "$file: not finished; run the same command again" ;;
  *) echo "$file: stopped with $status; see the log" ;;
esac
exit $status
