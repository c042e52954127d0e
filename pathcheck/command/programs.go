package command

import "strings"

// What programs do with the words that they are given, as data. Lists are
// separated by blanks. A program that is not here may write what it is given.

// A row is about programs that are alike.
type row struct {
	names string
	// use is what becomes of their words: argument, read or data. With an option of
	// unless all are arguments; one that starts a program is not followed then.
	use    Use
	unless string
	// operands is how many words that are no options are data, such as a script, data
	// and writes are options whose value is data or an argument all the same.
	operands     int
	data, writes string
	starts       bool // the other words are a command
	sets         bool // the words are variables that it may set
	opaque       bool // runs what is not followed
}

var table = []row{
	{use: read, names: "[ b2sum base64 basename bat cat cksum cmp column comm cut df diff dirname du egrep expand fgrep file fmt fold grep " +
		"head hexdump jq ls lsof md5sum more nl nm objdump od paste pr readelf readlink realpath rev rg sha1sum sha256sum sha512sum size " +
		"stat strings sum tac tail test tr type unexpand wc whereis which zcat"},
	{use: read, names: "less sort tree", writes: "-o -O --output -T --temporary-directory"},
	{use: read, names: "find", unless: "-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls"},
	{use: read, names: "sed", unless: "-i --in-place", data: "-e --expression -f --file", operands: 1},
	{use: read, names: "awk gawk mawk nawk", unless: "-i", data: "-F -v -f", operands: 1},
	{use: read, names: "c++ cc clang clang++ g++ gcc", writes: "-o -MF -dumpdir"},
	{names: ": date echo exit false kill pwd return seq set shift shopt sleep ssh times true ulimit umask yes"},
	{names: "alias trap su runuser script watch", opaque: true},
	{names: "getopts let mapfile printf read readarray unset wait", sets: true},
	{use: argument, names: "docker podman", data: "-v --volume --mount --tmpfs -w --workdir -e --env --entrypoint"},
	{use: argument, names: "git", data: "-m --message --author --format --pretty"},
	{use: argument, names: "node perl php python python3 ruby", data: "-c -e -E -r"},

	{starts: true, names: "builtin command exec", unless: "-v -V", data: "-a"},
	{starts: true, names: "busybox chronic fakeroot linux32 linux64 nohup setsid unbuffer"},
	{starts: true, names: "env", unless: "-C --chdir", data: "-u --unset -S --split-string"},
	{starts: true, names: "sudo doas", unless: "-D --chdir -i --login", data: "-u -g -h -p -r -t -T -U"},
	{starts: true, names: "chrt taskset timeout", operands: 1, data: "-k -s --kill-after --signal"},
	{starts: true, names: "nice ionice stdbuf", data: "-n --adjustment -c -i -o -e"},
	{starts: true, names: "time strace ltrace", data: "-f -e -p -s -S -u -E", writes: "-o --output"},
	{starts: true, names: "flock", operands: 1, data: "-w -E -c"},
	{starts: true, opaque: true, names: "xargs parallel", data: "-a -d -E -I -L -n -P -s"},
}

const (
	networkPrograms = "curl wget nc netcat telnet" // a run without network need not start them
	// otherVariables hold no path, or one that is only read or searched.
	otherVariables = "CC CPATH CXX EDITOR GOROOT IFS JAVA_HOME LD_LIBRARY_PATH LIBRARY_PATH MANPATH NODE_PATH PAGER PATH " +
		"PERL5LIB PKG_CONFIG_PATH PS1 PS2 PS4 PYTHONPATH SHELL SSL_CERT_DIR SSL_CERT_FILE"
	// Any command may write devices.
	devices = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/stdin /dev/stdout /dev/stderr"
)

func rowOf(name string) *row {
	for i := range table {
		if has(table[i].names, name) {
			return &table[i]
		}
	}
	return &row{use: argument}
}

// option reports whether a word is an option of a list, alone or with its value
// glued to it, and whether the next word is the value.
func option(list, word string) (is, next bool) {
	for opt := range strings.FieldsSeq(list) {
		switch {
		case word == opt:
			return true, true
		case opt[1] == '-' && strings.HasPrefix(word, opt+"="), opt[1] != '-' && strings.HasPrefix(word, opt):
			is, next = true, false
		case len(opt) == 2 && len(word) > 2 && len(word) < 5 && word[0] == '-' && word[1] != '-' && word[len(word)-1] == opt[1]:
			is, next = true, true // docker -itv
		}
	}
	return is, next
}

// has reports whether a list holds a word.
func has(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}
