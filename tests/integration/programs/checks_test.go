package programs

import (
	"slices"
	"strings"
)

// A check is a script for bash, in an empty directory. What it prints must be
// the same every time.
type check struct {
	name   string
	needs  string // programs, besides those of every system
	breaks breaks
	script string
}

// breaks says in which places something hidden changes what the script does:
// see [places].
type breaks string

const (
	never    breaks = ""
	home     breaks = "home"
	temp     breaks = "temp"
	work     breaks = "work"
	homeWork breaks = "home work"
	tempWork breaks = "temp work"
	// above: the directory above the current one is frozen.
	above  breaks = "beside work"
	always breaks = "beside home temp work"
	// asRoot: root may not write in /proc, see docs/kernel-notes.md.
	asRoot breaks = "root"
)

// in reports whether the script breaks for a user where p is hidden.
func (b breaks) in(p place, root bool) bool {
	if b == asRoot {
		return root
	}
	return slices.Contains(strings.Fields(string(b)), p.name)
}

const commitAll = `git init -q . && echo a >a && git add . && git commit -qm one && `

var checks = []check{
	// git
	{"git commit", "git", work, commitAll + `git log --format='%s %an'; git status --short`},
	{"git mv", "git", work, commitAll + `git mv a b && git commit -qm two && git ls-files && git log --oneline | wc -l`},
	{"git gc", "git", work, commitAll + `git gc -q && git fsck && git cat-file -p HEAD:a`},
	{"git worktree", "git", work, commitAll + `git worktree add -q wt HEAD -b side && cat wt/a && git worktree list | wc -l`},
	{"git clone", "git", work, `git init -q r && cd r && echo a >a && git add a && git commit -qm one && cd .. && git clone -q r c && cat c/a`},
	{"git merge", "git", work, commitAll + `git checkout -qb side && echo b >b && git add b && git commit -qm b && git checkout -q - && git merge -q side && ls && git stash list`},
	{"git stash", "git", work, commitAll + `echo b >a && git stash -q && cat a && git stash pop -q && cat a`},
	{"git config --global", "git", home, `git config --global core.pager cat; echo $?; git config --global core.pager`},
	// node
	{"node realpath", "node", never, `node -p 'fs.realpathSync(".") === process.cwd()'`},
	{"node fs.watch", "node", work, `node -e '
		const w = fs.watch(".", (e, f) => { console.log(f); w.close() }); fs.writeFileSync("seen", "")'`},
	{"node worker", "node", never, `node -e '
		const { Worker } = require("worker_threads");
		new Worker("require(\"worker_threads\").parentPort.postMessage(7)", { eval: true }).on("message", console.log)'`},
	{"node execSync", "node", never, `node -p 'child_process.execSync("echo $((6*7))").toString().trim()'`},
	{"node mkdtemp", "node", temp, `node -e 'const d = fs.mkdtempSync(os.tmpdir() + "/n-"); fs.writeFileSync(d + "/f", "x"); console.log(fs.readdirSync(d))'`},
	{"node require upwards", "node", work, `mkdir -p node_modules/m a/b && echo 'module.exports = 42' >node_modules/m/index.js && cd a/b && node -p 'require("m")'`},
	{"node http server", "node", never, `node -e '
		const s = http.createServer((q, r) => r.end("ok")).listen(0, "127.0.0.1", () => http.get({ port: s.address().port }, r => { console.log(r.statusCode); r.resume(); s.close() }))'`},
	{"npm install", "npm", homeWork, `mkdir package && echo '{"name":"m","version":"1.0.0"}' >package/package.json && echo 'module.exports = 42' >package/index.js &&
		tar czf m.tgz package && echo '{"name":"app","version":"1.0.0"}' >package.json && npm install ./m.tgz >/dev/null && node -p 'require("m")'`},
	// python
	{"python venv", "python3", work, `/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'`},
	{"python tempfile", "python3", never, `/usr/bin/python3 -c '
import tempfile
with tempfile.NamedTemporaryFile() as f, tempfile.TemporaryDirectory() as d: f.write(b"x"); print("ok")'`},
	{"python Pool", "python3", never, `/usr/bin/python3 -c '
from multiprocessing import Pool
with Pool(2) as p: print(p.map(abs, [-1, 2, -3]))'`},
	{"python Lock", "python3", never, `/usr/bin/python3 -c '
from multiprocessing import Lock, Process
l = Lock()
def f():
    with l: print("child")
with l: p = Process(target=f); p.start()
p.join(); print(p.exitcode)'`},
	{"python SharedMemory", "python3", never, `/usr/bin/python3 -c '
from multiprocessing.shared_memory import SharedMemory
m = SharedMemory(create=True, size=16); m.buf[0] = 7; n = SharedMemory(m.name); print(n.buf[0]); n.close(); m.close(); m.unlink()'`},
	{"python asyncio", "python3", never, `/usr/bin/python3 -c '
import asyncio
async def f():
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print(await p.communicate(b"x"), p.returncode)
asyncio.run(f())'`},
	{"python pty", "python3", never, `/usr/bin/python3 -c '
import os, pty
pid, fd = pty.fork()
if pid == 0: os.write(1, b"%d %d" % (os.isatty(0), os.get_terminal_size().columns >= 0)); os._exit(0)
print(os.read(fd, 100)); os.waitpid(pid, 0)'`},
	{"python sqlite", "python3", work, `/usr/bin/python3 -c '
import sqlite3
c = sqlite3.connect("d.db"); print(c.execute("pragma journal_mode=wal").fetchone())
c.execute("create table t(x)"); c.execute("insert into t values(7)"); c.commit(); print(c.execute("select x from t").fetchall())'`},
	{"python compileall", "python3", work, `mkdir p && echo 'x = 1' >p/m.py && /usr/bin/python3 -m compileall -q p && /usr/bin/python3 -c 'import p.m; print(p.m.x)' && ls p/__pycache__ | wc -l`},
	// go and rust
	{"go build", "go", tempWork, goModule + `go build -o prog . && ./prog 2>&1`},
	{"go vet", "go", tempWork, goModule + `go vet . && echo ok`},
	{"go test", "go", tempWork, goModule + `go test . | cut -f1,2`},
	{"cargo new", "cargo", work, `cargo new -q app --vcs none && find app -type f | sort`},
	{"cargo build", "cargo", tempWork, `cargo new -q app --vcs none && cd app && cargo build -q --offline && target/debug/app`},
	{"cargo test", "cargo", tempWork, `cargo new -q --lib app --vcs none && cd app && cargo test -q --offline 2>&1 | grep -c 'test result: ok'`},
	// C and build tools
	{"gcc", "gcc", tempWork, `echo '#include <stdio.h>
int main(void) { puts("c"); }' >m.c && gcc -o m m.c && ./m`},
	{"gcc -flto", "gcc", tempWork, `echo 'int f(void); int main(void) { return f(); }' >m.c && echo 'int f(void) { return 7; }' >f.c && gcc -O2 -flto -o m m.c f.c && ./m; echo $?`},
	{"make -j", "make", work, `printf 'all: a b c\na b c:\n\techo $@ >$@\n' >Makefile && make -sj4 && cat a b c`},
	{"tar", "tar", work, `mkdir d && echo a >d/a && tar czf d.tgz d && rm -r d && tar xzf d.tgz && cat d/a`},
	{"rsync", "rsync", work, `mkdir s && echo a >s/a && rsync -a s/ t/ && cat t/a`},
	{"sqlite3", "sqlite3", work, `sqlite3 d.db 'create table t(x); insert into t values(7); select x from t'`},
	{"busybox sh", "busybox", work, `busybox sh -c 'echo a >a && busybox cat a | busybox tr a b'`},
	{"perl", "perl", work, `perl -e 'open F, ">f" or die; print F "p"; close F; print -s "f", "\n"'`},
	// the shell itself
	{"heredoc", "", never, "cat <<E\nline\nE\ncat <<<here"},
	{"large heredoc", "", temp, `s=$(printf '%100000s' x); wc -c <<<"$s"`},
	{"process substitution", "", never, `diff <(echo a) <(echo b); echo $?; echo c > >(cat); wait $!`},
	{"bash -l", "", never, `bash -lc 'shopt login_shell; echo "$HOME" | wc -l'`},
	{"bash -i", "", never, `echo 'echo $((6*7))' | bash --norc -i 2>/dev/null`},
	{"background jobs", "", never, `sleep 0.01 & p=$!; wait $p; echo $?; (exit 3) & wait $!; echo $?`},
	{"trap and kill", "", never, `trap 'echo term' TERM; kill -TERM $$; bash -c 'kill -9 $$'; echo $?`},
	{"coproc", "", never, `coproc cat; echo x >&"${COPROC[1]}"; read -r y <&"${COPROC[0]}"; echo $y`},
	{"glob", "", work, `mkdir d && touch d/a d/b && echo d/* && echo *`},
	{"append and truncate", "", work, `echo a >f; echo b >>f; cat f; : >f; wc -c <f`},
	{"mkfifo", "", work, `mkfifo p && (echo x >p &) && cat p`},
	// small tools
	{"move and link", "", work, `mkdir a b && echo x >a/f && mv a/f b/ && ln b/f a/l && ln -s ../b/f a/s && cat a/l a/s`},
	{"cp -a", "", work, `mkdir a && echo x >a/f && cp -a a b && cat b/f`},
	{"sed -i", "", work, `echo a >f && sed -i s/a/b/ f && cat f`},
	{"find and xargs", "", work, `mkdir -p a/b && touch a/b/f && find . -type f | xargs -n1 -P2 echo`},
	{"sort", "", temp, `seq 100000 | sort -S 64k -n | tail -1`},
	{"mktemp", "", temp, `f=$(mktemp) && d=$(mktemp -d) && echo x >"$f" && touch "$d/f" && cat "$f"`},
	{"nohup, setsid, timeout", "", never, `nohup echo a 2>&1; setsid -w echo b; timeout 60 echo c; timeout 0.01 sleep 60; echo $?`},
	{"script", "script", work, `script -qec 'test -t 1 && echo tty' log`},
	{"ssh-keygen", "ssh-keygen", work, `ssh-keygen -q -t ed25519 -N '' -C c -f k </dev/null && cut -d' ' -f1,3 k.pub`},
	{"ps", "ps", never, `ps -o comm= -p $$; ps -e >/dev/null; echo $?`},
	{"dpkg", "dpkg", never, `dpkg -l bash | tail -1 | cut -c1-8`},
	{"man", "man", work, `echo '.TH P 1
.SH NAME
p' >p.1; man -P cat -l ./p.1 | grep -c NAME`},
	{"unshare -r", "unshare", asRoot, `unshare -r id -u`},
	{"home directory", "", home, `echo x >~/.rc && cat ~/.rc && ls -A ~ | grep -v -e '^\.ssh$'`},
	{"home subdirectory", "", home, `mkdir -p ~/.cache/tool && echo x >~/.cache/tool/f && cat ~/.cache/tool/f`},
	// what freezing means
	{"ls /", "", always, `ls / >/dev/null; echo $?`},
	{"find /", "", always, `find / -maxdepth 1 >/dev/null; echo $?`},
	{"ls ..", "", above, `ls ..; echo $?`},
	{"mkdir ../new", "", above, `mkdir ../new; echo $?; ls -d ../new`},
}

const goModule = `echo 'module m' >go.mod && echo 'package main
func main() { println("go") }' >m.go && echo 'package main
import "testing"
func TestM(t *testing.T) {}' >m_test.go && `
