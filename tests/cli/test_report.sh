#!/bin/sh
# The HTML report: self-contained, safe whatever the results say, drawn without errors in a real browser.
. "$(dirname "$0")/common.sh" "$@"

expect 0 . run small.yaml --output r.jsonl --trace r.json.gz
expect 0 'report: report.html$' report r.jsonl
expect 0 'report: report.html.1$' report r.jsonl --rank 3
grep -q '"timeline":{' report.html || fail "the trace that the results name is not shown"
expect 0 . report r.jsonl -o other.html --trace r-1.json.gz
expect 2 'nothing about rank 4' report r.jsonl --rank 4

# No network: nothing is loaded from anywhere.
grep -Eio '(src|href)="?(https?:|//)[^"> ]*|@import|fetch\(|XMLHttpRequest' report.html >out && fail "loads something"
grep -q 'Permission is hereby granted' report.html || fail "the licence of Chart.js is missing"

# Texts that want to be markup
sed -e 's/"variant":"fused"/"variant":"<\/script><img src=x onerror=alert(1)><!--<script>"/' r.jsonl >evil.jsonl
expect 0 . report evil.jsonl -o evil.html
grep -q '<img' evil.html && fail "a variant's name became markup"
[ "$(grep -o '</script>' evil.html | wc -l)" -eq "$(grep -o '</script>' report.html | wc -l)" ] || fail "a name ends the script"

# What is no result, trace or table
expect 2 'which result files' report
expect 2 'standard output cannot be chosen here' report r.jsonl -o -
[ -e - ] && fail "a file called -"
expect 2 'missing.jsonl' report missing.jsonl
head -1 r.jsonl >nothing.jsonl
expect 2 'no point in any' report nothing.jsonl
expect 2 'nowhere.json: No such file' report r.jsonl --trace nowhere.json
expect 2 '\.: is a folder' report r.jsonl --trace .
mkfifo pipe
expect 2 'pipe: is a folder, device or pipe' report r.jsonl --trace pipe
expect 2 'not a trace' report r.jsonl --trace r.jsonl
gzip -dc r-0.json.gz | head -20 >cut.json
expect 2 'cut.json:20: ends too early' report r.jsonl --trace cut.json
head -c 2000 r-0.json.gz >cut.json.gz
expect 2 'cut.json.gz:[0-9]+: ends too early' report r.jsonl --trace cut.json.gz
sed 's/"dur":[0-9.]*/"dur":-1/' "$(gzip -dc r-0.json.gz >whole.json; echo whole.json)" >negative.json
expect 2 'a slice without a time' report r.jsonl --trace negative.json
printf 'kernel,shape\nag_gemm,"M=1",7\n' >table.csv
expect 2 'table.csv:2: 3 fields, expected 2' report r.jsonl --published table.csv
expect 2 'cannot be read' report r.jsonl --published nowhere.csv

# 500 points: quick and small
awk '/"record":"point"/ { for (i = 0; i < 125; i++) { line = $0; sub(/"m":[0-9]+/, "\"m\":" i, line)
     gsub(/"problem.m":"[0-9]+"/, "\"problem.m\":\"" 1000 + i "\"", line); print line } next } { print }' r.jsonl >many.jsonl
# Processor time: the second line of `times` is what the children have used, "0m1.250s 0m0.030s".
times >before
expect 0 . report many.jsonl -o many.html
times >after
took_ms=$(awk 'FNR == 2 { s = 0; for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); s += t[1] * 60 + t[2] } v[n++] = s }
    END { printf "%d", 1000 * (v[1] - v[0]) }' before after)
[ "$(grep -c '"point"' many.jsonl)" -eq 500 ] || fail "not 500 points"
[ "$took_ms" -lt 2000 ] || fail "500 points took $took_ms ms of processor time"
[ "$(wc -c <many.html)" -lt 5000000 ] || fail "500 points make more than 5 MB"

# In a browser: every plot drawn, nothing on the console
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ] || [ -n "${MKERNEL_NO_BROWSER:-}" ]; then
    echo "skipped: no browser here, or told to do without: the report was not looked at"
    finish
fi
for page in report evil many; do
    timeout 100 "$browser" --headless=new --no-sandbox --disable-gpu --virtual-time-budget=8000 --enable-logging=stderr \
        --user-data-dir="$WORK/profile" --dump-dom "file://$WORK/$page.html" >dom 2>out
    grep -q 'data-drawn="yes"' dom || fail "$page.html: not drawn to the end"
    grep -q '<img' dom && fail "$page.html: a name became markup"
    grep CONSOLE out >console && { cp console out; fail "$page.html: errors on the console"; }
done
grep -q 'aria-label="Time\. fused: ' dom || fail "many.html: a plot without words for those who do not see it"
finish
