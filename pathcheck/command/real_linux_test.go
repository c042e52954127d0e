package command

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestCheckAgainstRealShells writes random programs out of literals, checks
// them, runs them in a real shell under strace, and wants every file that was
// opened for writing outside the roots to be named as outside, unless the check
// said that something is opaque. The programs end at the first failure, as the check
// takes it that a cd succeeds.
func TestCheckAgainstRealShells(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, shell := range []string{"bash", "dash"} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			againstReal(t, strace, path, shell)
		})
	}
}

func againstReal(t *testing.T, strace, shellPath, shell string) {
	// As deep as no program here climbs.
	top, err := os.MkdirTemp("/var/tmp", "command-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	if top, err = filepath.EvalSymlinks(top); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(top, strings.Repeat("d/", 40))
	cred := nobody(t, top)
	clear, silent, wrote, alarms, proved := 0, 0, 0, 0, 0
	const programs = 150
	for i := range programs {
		g := &generator{rnd: rand.New(rand.NewPCG(uint64(i), uint64(len(shell)))), bash: shell == "bash"}
		fresh(t, base, cred)
		text := strings.ReplaceAll(g.program(), "$BASE", base)
		o := Options{
			Scope: ScopeWorkspace, Workspace: base + "/ws", Dir: base + "/ws", Roots: []string{base + "/cache"},
			Lookup: func(name string) (string, bool) { return base + "/home", name == "HOME" }, Resolve: resolve,
		}
		res, err := Check(text, o)
		var said []string
		for _, n := range res.Paths {
			if n.Outside && n.Use != read {
				said = append(said, n.Path)
			}
		}
		if len(said) > 0 && err == nil {
			t.Errorf("outside and no error: %q", said)
		}
		real := writes(t, strace, shellPath, text, o, cred)
		if len(res.Opaque) == 0 {
			clear++
		}
		bad := false
		for _, p := range real {
			inside := strings.HasPrefix(p+"/", base+"/ws/") || strings.HasPrefix(p+"/", base+"/cache/")
			if inside || p == "/dev/null" {
				continue
			}
			bad = true
			if !slices.Contains(said, p) && len(res.Opaque) == 0 {
				t.Errorf("seed %d: %s was opened for writing, and the check says outside %q\n%s", i, p, said, text)
			}
		}
		if bad && len(res.Opaque) == 0 {
			proved++
		}
		if bad {
			wrote++
		} else if err == nil {
			silent++
		} else {
			alarms++
		}
	}
	t.Logf("%d programs: %d without an opaque part, %d wrote outside (%d of them without), %d were rightly let pass, %d were refused and wrote nothing outside",
		programs, clear, wrote, proved, silent, alarms)
	if clear < programs/3 || proved < programs/8 || silent < programs/15 {
		t.Error("the programs prove too little")
	}
}

// nobody is who runs the programs, so that a mistake here cannot write far.
func nobody(t *testing.T, top string) *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

func fresh(t *testing.T, base string, cred *syscall.Credential) {
	t.Helper()
	if err := os.RemoveAll(base); err != nil {
		t.Fatal(err)
	}
	own := func(p string) {
		if cred != nil {
			if err := os.Lchown(p, int(cred.Uid), int(cred.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, d := range []string{"ws/sub/deep", "ws/other", "cache", "home", "out"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"ws/leaves": base + "/out", "ws/stays": "sub/deep"} {
		if err := os.Symlink(to, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := filepath.WalkDir(base, func(p string, _ os.DirEntry, err error) error { own(p); return err }); err != nil {
		t.Fatal(err)
	}
}

var openLine = regexp.MustCompile(`openat\(AT_FDCWD<([^>]*)>, "([^"]*)", ([A-Z_|]+)[^)]*\) = (.*)`)

// writes runs a program and returns the locations that were opened for writing.
func writes(t *testing.T, strace, shell, text string, o Options, cred *syscall.Credential) []string {
	t.Helper()
	log := filepath.Join(filepath.Dir(o.Workspace), "log")
	cmd := exec.Command(strace, "-f", "-y", "-s", "4096", "-e", "trace=openat", "-o", log, shell, "-c", text)
	cmd.Dir = o.Workspace
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + filepath.Dir(o.Workspace) + "/home", "PWD=" + o.Workspace}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	_ = cmd.Run() // most programs fail somewhere, and are to
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatalf("strace wrote no log: %v", err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		m := openLine.FindStringSubmatch(line)
		if m == nil || !strings.Contains(m[3], "O_WRONLY") && !strings.Contains(m[3], "O_RDWR") {
			continue
		}
		p := m[2]
		if !strings.HasPrefix(p, "/") {
			p = m[1] + "/" + p
		}
		if strings.Contains(m[4], "ENOENT") || strings.Contains(m[4], "ENOTDIR") || p == "/dev/tty" {
			continue // names no place
		}
		q, err := resolve(p)
		if err != nil {
			continue
		}
		out = append(out, q)
	}
	return out
}

// A generator writes programs out of literals.
type generator struct {
	rnd   *rand.Rand
	bash  bool
	depth int
	funcs int
}

func (g *generator) pick(ss ...string) string { return ss[g.rnd.IntN(len(ss))] }

func (g *generator) program() string {
	return "set -e; V=" + g.quoted(g.path()) + "; W=" + g.quoted(g.path()) + "\n" + g.list()
}

func (g *generator) file() string { return "f" + fmt.Sprint(g.rnd.IntN(4)) }

func (g *generator) path() string {
	return g.pick(
		"$BASE/out/", "$BASE/ws/", "$BASE/cache/", "$BASE/ws/sub/../../out/", "", "", "./", "../", "sub/", "sub/../", "../ws/", "sub/../../out/",
		"leaves/", "leaves/../", "stays/", "stays/../", "stays/../../../", "deep/", "../../", "../sub/", "other/../../", "$BASE/ws//leaves/",
	) + g.file()
}

// quoted writes a literal in one of the ways of the shell.
func (g *generator) quoted(s string) string {
	i := g.rnd.IntN(len(s))
	if strings.HasPrefix(s, "$BASE") {
		i = 5
	}
	return [...]string{s, s, "'" + s + "'", `"` + s + `"`, s[:i] + `\` + s[i:], s[:i] + "'" + s[i:] + "'"}[g.rnd.IntN(6)]
}

func (g *generator) write() string {
	p, v := g.quoted(g.path()), g.pick("V", "W")
	switch g.rnd.IntN(8) {
	case 0:
		return "echo x >>" + p
	case 1:
		return "echo x >| " + p
	case 2:
		return ": 3<>" + p
	case 3:
		if g.bash {
			return "echo x &>" + p
		}
		return "echo x 2>" + p
	case 4:
		return "touch ./" + g.quoted(strings.TrimPrefix(g.path(), "$BASE/ws/")) // a plain word is no path
	case 5:
		return v + "=" + p + g.pick("; ", " && ", "\n") + "echo x > \"$" + v + "\""
	case 6:
		return "echo x > \"${" + v + "}" + g.pick("", "/g", "g") + "\""
	default:
		return "exec 4>" + p
	}
}

func (g *generator) cd() string {
	return g.pick("cd ", "cd ", "cd ", "command cd ", "cd ./") +
		g.quoted(g.pick("sub", "sub/deep", "..", "../..", "other", "stays", "leaves", "nosuch", ".", "deep", "../sub"))
}

func (g *generator) list() string {
	list := g.stmt()
	for range g.rnd.IntN(3) {
		list += "\n" + g.stmt()
	}
	return list
}

func (g *generator) stmt() string {
	g.depth++
	defer func() { g.depth-- }()
	n := g.rnd.IntN(16)
	if g.depth > 3 {
		n %= 8
	}
	switch n {
	case 0, 1, 2, 3:
		return g.write()
	case 4, 5, 6:
		return g.cd()
	case 7:
		return g.pick("V=", "W=") + g.quoted(g.path())
	case 8:
		return "true && " + g.write()
	case 9, 10:
		return "( " + g.list() + ")"
	case 11:
		return "{ " + g.list() + "\n} > " + g.quoted(g.path())
	case 12:
		return "if true; then " + g.list() + "; fi"
	case 13:
		return "for V in " + g.quoted(g.path()) + " a; do " + g.list() + "; done"
	case 14:
		g.funcs++
		f := "fn" + fmt.Sprint(g.funcs)
		return f + "() { " + g.list() + "\n}\n" + f
	default:
		return g.pick("", "V="+g.path()+" ") + g.pick("bash", "sh", "env bash") + " -ec '" + strings.ReplaceAll(g.list(), "'", `'\''`) + "'"
	}
}
