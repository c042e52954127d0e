# What an agent's shell does: it starts a process that outlives it, makes the tries
# on standard input, one a line, and has node make them again.
lib=$1 own=$2

mkfifo "$own/go" "$own/done"
node "$lib/try.cjs" later "$own/go" "$own/done" </dev/null >/dev/null 2>&1 &

append() { printf + >>"$1"; }
create() { (set -C && : >"$1") && rm -- "$1"; }

outcome() {
	local err
	if err=$("$@" 2>&1 >/dev/null); then
		echo ok
	elif [[ $err == *'Permission denied'* ]]; then
		echo EACCES
	else
		echo "${err:-failed}"
	fi
}

history() {
	local out code
	out=$(git -C "$@" 2>/dev/null)
	code=$?
	[[ $out == *marked* ]] && code="$code marked"
	echo "$code"
}

while IFS=$'\t' read -r op path args; do
	case $op in
	read) outcome cat -- "$path" ;;
	list) outcome ls -- "$path" ;;
	write) outcome append "$path" ;;
	create) outcome create "$path" ;;
	git) history "$path" $args ;;
	*) echo - ;;
	esac
done
node "$lib/try.cjs" now </dev/null
