#!/usr/bin/env bash
# Shows what the shim does, on a throw-away project under /var/tmp.
# Usage: demo.sh DIRECTORY-OF-THE-BINARIES. Needs no root, and cleans up.
#
# It is a check, too: it fails when something that must be denied could be
# done, when something that must work did not, and when a denial proves
# nothing because the same thing failed without the shim.
set -euo pipefail

bin=$(cd "${1:-bin}" && pwd)
top=$(mktemp -d /var/tmp/sandbox-demo.XXXXXX)
trap 'rm -rf "$top"' EXIT
export LC_ALL=C TMPDIR=$top/tmp GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1

# --- the project ------------------------------------------------------------

mkdir "$top"/{work,results,graders,secret,tmp,shims,reports}
echo 'the answer is 42' >"$top/graders/expected.txt"
echo 'token-of-the-harness' >"$top/secret/token"
(
  cd "$top/work"
  git init -q
  git config user.name Demo
  git config user.email demo@localhost
  echo 'print(6 * 7)' >answer.py
  git add answer.py
  git commit -qm 'the task'
)

# What the agent does. Every line it prints is: row, tab, outcome.
cat >"$top/agent.sh" <<'AGENT'
top=$1
try() { # row, command...
  local row=$1 said
  shift
  if said=$("$@" 2>&1); then
    printf '%s\tworked\n' "$row"
  elif [[ $said == *[Pp]'ermission denied'* ]]; then
    printf '%s\tdenied\n' "$row"
  else
    printf '%s\tfailed: %s\n' "$row" "${said##*$'\n'}"
  fi
}
grader=$top/graders/expected.txt

by_link() { ln -sf "$grader" "$top/work/link" && cat "$top/work/link"; }
by_background() { cat "$grader" & wait $!; }
by_python() { python3 -c 'import sys; print(open(sys.argv[1]).read())' "$grader"; }
move() { mv "$grader" "$top/work/stolen" && mv "$top/work/stolen" "$grader"; }
change() { echo cheated >>"$grader"; }
commit() { echo "# $$" >>answer.py && git commit -qam 'a fix'; }
result() { echo 42 >"$top/results/answer" && cat "$top/results/answer"; }
python() { [ "$(python3 answer.py)" = 42 ]; }
temporary() { local f; f=$(mktemp) && rm "$f"; }
pipes() { sort <(printf 'b\na\n') <<<ignored >/dev/null; }

try read         cat "$grader"
try list         ls "$top/graders"
try token        cat "$top/secret/token"
try link         by_link
try nested       bash -c "cat $grader"
try background   by_background
[ -z "$(command -v python3)" ] || try python_read by_python
try move         move
try change       change
try commit       commit
try result       result
[ -z "$(command -v python3)" ] || try python python
try temporary    temporary
try pipes        pipes

if tr '\0' '\n' </proc/$$/environ | grep -q '^SANDBOX_EXEC_SHIM_POLICY='; then seen=worked; else seen='not there'; fi
printf 'variable\t%s\n' "$seen"
printf 'pid\t%s\n' "$$"
exit 37
AGENT

# What a harness does: it starts bash. This function is the same both times.
declare -A before now
harness() { # name of the table
  local -n table=$1
  local row outcome status=0
  cd "$top/work"
  bash "$top/agent.sh" "$top" >"$top/out" &
  wait $! || status=$?
  while IFS=$'\t' read -r row outcome; do table[$row]=$outcome; done <"$top/out"
  if [ "${table[pid]:-}" = $! ]; then table[pid]=same; fi
  table[status]=$status
}

# --- the two runs -----------------------------------------------------------

cat <<EXPLAIN
A harness lets an agent work on a task. The agent must not see how its work is
graded, and not the harness's token. But they lie on the same disk, and the
same user owns them:

  $top/
    work/      the agent's work directory, a git repository
    results/   where it leaves its answer
    graders/   what the answer is graded with
    secret/    a token

The harness starts "bash agent.sh", and nobody can change how it does that.
But its environment can be given a variable that says what to hide. By itself,
that does nothing:

  \$ export SANDBOX_EXEC_SHIM_POLICY='{"version":1,
      "hidden":["$top/graders","$top/secret"],
      "report":"$top/reports/launch.jsonl"}'

EXPLAIN
export SANDBOX_EXEC_SHIM_POLICY='{"version":1,"hidden":["'$top'/graders","'$top'/secret"],"report":"'$top'/reports/launch.jsonl"}'
harness before

cat <<EXPLAIN
And a shim can be put in front of the real bash on PATH:

  \$ export PATH=$top/shims:\$PATH
  \$ install-shim install --dir $top/shims bash
EXPLAIN
export PATH=$top/shims:$PATH
"$bin/install-shim" install --dir "$top/shims" bash | sed 's/^/  /'
hash -r
harness now
if [ "${now[status]}" = 125 ]; then
  echo "demo: the shim could not confine the program on this machine, and so did not start it" >&2
  exit 1
fi
cat <<'EXPLAIN'

The same "bash agent.sh", before and now:

EXPLAIN

# --- the comparison ---------------------------------------------------------

bad=0
row() { # row, what it is, wanted before, wanted now
  local b=${before[$1]:-missing} n=${now[$1]:-missing} mark=
  if [ "$b" != "$3" ] || [ "$n" != "$4" ]; then
    mark="   <-- expected: $3, $4"
    bad=$((bad + 1))
  fi
  printf '  %-50s %-10s %s%s\n' "$2" "$b" "$n" "$mark"
}
python_row() {
  if command -v python3 >/dev/null; then row "$@"; else printf '  %-50s (no python3 here)\n' "$2"; fi
}

printf '  %-50s %-10s %s\n' 'the agent tries to' before now
echo "  ------------------------------------------------------------------------"
row read       'read the grader'                                worked denied
row list       'list the graders'                               worked denied
row token      'read the token'                                 worked denied
row link       '... read the grader through a symbolic link'    worked denied
row nested     '... from another bash that it starts'           worked denied
row background '... from a process in the background'           worked denied
python_row python_read '... from Python'                        worked denied
row move       'move the grader away'                           worked denied
row change     'change the grader'                              worked denied
echo
row commit     'commit its work with git'                       worked worked
row result     'write its result'                               worked worked
python_row python      'run its program with Python'            worked worked
row temporary  'make a temporary file'                          worked worked
row pipes      'use pipes and process substitution'             worked worked
echo
row variable   'find the policy in its environment'             worked 'not there'
row pid        'the process that the harness started'           same same
row status     'the exit status that the harness gets'          37 37

echo
if [ -s "$top/reports/launch.jsonl" ]; then
  cat <<'EXPLAIN'
The launch left a report, one line of JSON. Some of it, over several lines:

EXPLAIN
  head -n 1 "$top/reports/launch.jsonl" |
    sed -E 's/,"(shim|target|outcome|sandbox_[a-z]+|landlock|hidden|frozen|enforced|not_enforced|elapsed_us)":/\n"\1":/g; s/(\[|,)\{"what"/\1\n  {"what"/g' |
    grep -E '^("(target|outcome|sandbox_mechanism|landlock|hidden|frozen|enforced|not_enforced)"|  )' | sed 's/^/  /'
  cat <<'EXPLAIN'

"frozen" lists what hiding costs: these directories cannot be listed and take no
new entries. "not_enforced" lists what nobody should rely on.
EXPLAIN
else
  echo "The launch left no report." >&2
  bad=$((bad + 1))
fi

echo
if [ $bad -gt 0 ]; then
  echo "demo: $bad of the outcomes above are not what they must be" >&2
  exit 1
fi
cat <<'EXPLAIN'
Nothing was changed in the harness or in bash. The kernel denies it (Landlock);
the shim asked for that and then became bash, in the same process.
EXPLAIN
