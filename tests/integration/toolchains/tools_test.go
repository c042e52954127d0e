package toolchains_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func programs(names ...string) (out []launch.Feature) {
	for _, n := range names {
		out = append(out, launch.Program(n))
	}
	return out
}

var goTool = tool{
	name: "go", needs: programs("go"), env: goEnv,
	files: map[string]string{
		"go.mod": "module example.org/app\n\ngo 1.24\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"golang.org/x/sync/errgroup\"\n)\n\nfunc main() {\n" +
			"\tvar g errgroup.Group\n\tg.Go(func() error { fmt.Println(Answer()); return nil })\n\t_ = g.Wait()\n}\n",
		"answer.go": "package main\n\nfunc Answer() int { return 42 }\n",
		"answer_test.go": "package main\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestAnswer(t *testing.T) {\n" +
			"\tif Answer() != 42 {\n\t\tt.Fail()\n\t}\n\tif err := os.WriteFile(t.TempDir()+\"/x\", nil, 0o644); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
	},
	steps: []step{
		{"go get golang.org/x/sync@v0.10.0 && go mod verify", "all modules verified"},
		{"go env GOCACHE && go build ./...", "go-build"},
		{"go test ./...", "ok"},
		{"go vet ./...", ""},
		{"go run .", "42"},
	},
}

var mktemp = tool{
	name: "mktemp", needs: programs("mktemp"),
	steps: []step{
		{"d=$(mktemp -d) && echo x > $d/f && echo $d && f=$(mktemp) && rm $f $d/f && rmdir $d && touch done", "/tmp/tmp."},
	},
}

var devices = tool{
	name: "devices", needs: programs("head", "wc", "diff"),
	steps: []step{
		{"head -c1 /dev/urandom | wc -c && echo x >/dev/null && touch done", "1"},
		{"cat <<< here && diff <(echo a) <(echo a)", "here"},
	},
}

var tools = []tool{
	{
		// npm keeps everything in ~/.npm, which the default never makes.
		name: "npm", needs: programs("npm", "node"), env: npmEnv, empty: "leaves",
		steps: []step{
			{"npm init -y", ""},
			{"npm install ms", "added 1 package"},
			{`npm pkg set scripts.test='node -e "console.log(require(\"ms\")(\"1s\"))"' && npm test`, "1000"},
			{"node -e 'require(\"fs\").mkdtempSync(require(\"os\").tmpdir() + \"/x\")'", ""},
		},
	},
	{
		name: "python", needs: programs("/usr/bin/python3"),
		files: map[string]string{
			"mod.py": "answer = 42\n",
			"lock.py": "import multiprocessing as mp\n\ndef work(lock, n):\n    with lock:\n        n.value += 1\n\n" +
				"if __name__ == '__main__':\n    lock, n = mp.Lock(), mp.Value('i', 0)\n" +
				"    ps = [mp.Process(target=work, args=(lock, n)) for _ in range(2)]\n" +
				"    [p.start() for p in ps]; [p.join() for p in ps]\n    print('counted', n.value)\n" +
				"    with mp.Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])))\n",
		},
		steps: []step{
			{"/usr/bin/python3 -m venv env && env/bin/python -c 'import sys; print(sys.prefix)'", "/env"},
			{"/usr/bin/python3 -c 'import tempfile; tempfile.NamedTemporaryFile().write(b\"x\"); print(tempfile.mkdtemp())'", "/tmp/"},
			{"/usr/bin/python3 lock.py", "counted 2\n3\n"},
			{"/usr/bin/python3 -m py_compile mod.py && /usr/bin/python3 -c 'import mod; print(mod.answer)'", "42"},
			{"/usr/bin/python3 -c 'import pty; print(len(pty.openpty()))'", "2"},
		},
	},
	{
		name: "sqlite", needs: programs("/usr/bin/python3"),
		steps: []step{
			{`/usr/bin/python3 -c '
import sqlite3
db = sqlite3.connect("x.db")
db.execute("pragma journal_mode=wal")
db.execute("pragma temp_store=file")
db.execute("create table t(a)")
db.executemany("insert into t values(?)", ((i,) for i in range(1000)))
db.commit()
print(db.execute("select count(*) from (select a from t order by -a)").fetchone()[0])
db.close()'`, "1000"},
		},
	},
	{
		name: "cargo", needs: programs("cargo", "cc"), env: cargoEnv,
		chance: regexp.MustCompile(`-[0-9a-f]{16}|target/debug/incremental/.*|\.[0-9a-z]{20,}\b.*`),
		steps: []step{
			{"cargo new --vcs none app", ""},
			{"cd app && cargo build --offline", ""},
			{"cd app && cargo test --offline", "test result: ok"},
			{"app/target/debug/app", "Hello, world!"},
		},
	},
	{
		name: "gcc and make", needs: programs("gcc", "make"),
		files: map[string]string{
			"Makefile": "app: main.o other.o\n\tgcc -flto -o $@ $^\n\n%.o: %.c\n\tgcc -flto -c -o $@ $<\n\nclean:\n\trm -f app *.o\n",
			"main.c":   "#include <stdio.h>\nint other(void);\nint main(void) { printf(\"%d\\n\", other()); return 0; }\n",
			"other.c":  "int other(void) { return 42; }\n",
		},
		steps: []step{
			{"make -j2 && ./app", "42"},
			{"make clean && make && ./app", "42"},
		},
	},
	{
		name: "git", needs: programs("git"), env: gitEnv,
		chance: regexp.MustCompile(`[0-9a-f]{38,}`),
		steps: []step{
			{"git init -q -b main repo && cd repo && for i in 1 2 3; do echo $i > f$i && git add . && git commit -qm c$i; done; git log --oneline | wc -l", "3"},
			{"cd repo && git worktree add -q ../side -b side && cd ../side && echo s > s && git add s && git commit -qm side && git status --short", ""},
			{`cd repo && GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i --root && git log --oneline | wc -l`, "2"},
			{"cd repo && git merge -q -m m side --allow-unrelated-histories -X ours && git stash list && git gc -q && git fsck --no-progress", ""},
			{"git clone -q repo copy && cd copy && git log -1 --format=%s", "m"},
		},
	},
	{
		name: "sort", needs: programs("sort", "seq"),
		steps: []step{
			{"seq 300000 -1 1 > in && sort -n -S 200K -o out in && head -1 out && test $(wc -l < out) = 300000", "1\n"},
			{"sort -n -S 200K -T . --compress-program=gzip in > out2 && cmp out out2", ""},
		},
	},
	{
		name: "tar", needs: programs("tar", "gzip"),
		files: map[string]string{"d/a": "1", "d/b/c": "2"},
		steps: []step{
			{"ln -s a d/link && ln d/a d/hard && tar czf x.tgz d && mkdir to && tar xzf x.tgz -C to && diff -r d to/d && ls to/d", "hard"},
		},
	},
	{
		name: "rsync", needs: programs("rsync"),
		files: map[string]string{"d/a": "1", "d/b/c": "2"},
		steps: []step{
			{"rsync -a d/ to/ && echo 3 > d/a && rsync -a --delete --partial d/ to/ && cat to/a && diff -r d to", "3"},
		},
	},
}

// goEnv is how this machine reaches modules: not where anything is kept.
func goEnv(t *testing.T, _ launch.User) (env []string) {
	t.Helper()
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GONOSUMCHECK", "GONOPROXY", "GOPRIVATE", "GOINSECURE", "GOTOOLCHAIN"} {
		if value := ask(t, "go", "env", name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func npmEnv(t *testing.T, _ launch.User) []string {
	t.Helper()
	return []string{"npm_config_registry=" + ask(t, "npm", "config", "get", "registry"), "npm_config_update_notifier=false"}
}

// gitEnv names somebody: without a name git refuses to commit anywhere.
func gitEnv(*testing.T, launch.User) []string {
	return []string{
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2024-01-01T00:00:00Z",
	}
}

// cargoEnv says where the compiler is when HOME does not: rustup's programs
// look there.
func cargoEnv(t *testing.T, u launch.User) []string {
	t.Helper()
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + filepath.Dir(cargo) + ":" + searchPath()}
	rustup := os.Getenv("RUSTUP_HOME")
	if dir, err := os.UserHomeDir(); err == nil && rustup == "" {
		rustup = filepath.Join(dir, ".rustup")
	}
	if _, err := os.Stat(rustup); err == nil {
		env = append(env, "RUSTUP_HOME="+rustup)
	}
	test := launch.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "cargo --version && rustc --version"}, Env: append(env, "HOME="+launch.Nowhere), User: u}
	if r := test.Run(t); r.Code != 0 {
		if os.Getenv("CI") != "" && u.UID == 0 {
			t.Fatalf("cargo does not work: %v", r)
		}
		t.Skipf("%s has no cargo: %s", u.Name, r.Stderr)
	}
	return env
}
