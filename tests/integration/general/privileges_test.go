package general_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A set-user-id program gives nothing to a confined launch.
func TestCase19_NoGainBySetuid(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Nobody)
	data, err := os.ReadFile(launch.Look(t, "id"))
	if err != nil {
		t.Fatal(err)
	}
	helper := launch.WriteProgram(t, filepath.Join(p.dir, "helper"), data)
	if err := os.Chmod(helper, os.ModeSetuid|os.ModeSetgid|0o755); err != nil {
		t.Fatal(err)
	}
	for name, policy := range map[string]any{"hidden": p.policy(nil), "capabilities": object{"version": 1, "capabilities": "restricted"}} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []launch.Cmd{p.sh(`"$0" -u; "$0" -g; grep NoNewPrivs /proc/self/status`, nil), {
				Path: launch.Install(t, p.bin, "helper", launch.Record{Real: helper}), Args: []string{"id", "-u"}, User: p.u,
			}} {
				direct := len(c.Args) > 3
				if direct {
					c.Args[3] = helper
				}
				want, wantDirect := "65534\n", "0\n"
				if direct {
					want, wantDirect = "65534\n65534\nNoNewPrivs:\t1\n", "0\n0\nNoNewPrivs:\t0\n"
				}
				if r := c.Run(t); r.Stdout != wantDirect {
					t.Fatalf("without a policy the helper must work (nosuid mount?): %v", r)
				}
				c.Policy = policy
				if r := c.Run(t); r.Stdout != want || r.Stderr != "" || r.Code != 0 {
					t.Errorf("want %q: %v", want, r)
				}
			}
		})
	}
}

// A helper with file capabilities, as ping is on some systems, gains none.
func TestCase19_NoGainByFileCapabilities(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Nobody)
	data, err := os.ReadFile(launch.Look(t, "grep"))
	if err != nil {
		t.Fatal(err)
	}
	helper := launch.WriteProgram(t, filepath.Join(p.dir, "helper"), data)
	// CAP_NET_RAW, effective: struct vfs_cap_data, revision 2 (capabilities(7)).
	caps := []byte{1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if err := unix.Setxattr(helper, "security.capability", caps, 0); err != nil {
		t.Fatal(err)
	}
	c := p.sh(`"$3" CapEff /proc/self/status`, nil)
	c.Args = append(c.Args, helper)
	if r := c.Run(t); r.Stdout != "CapEff:\t0000000000002000\n" {
		t.Fatalf("without a policy the helper must work (nosuid mount?): %v", r)
	}
	for name, policy := range map[string]any{
		"hidden": p.policy(nil), "capabilities": object{"version": 1, "capabilities": "restricted"},
		"workspace": object{"version": 1, "scope": "workspace"},
	} {
		c.Policy = policy
		if r := c.Run(t); r.Stdout != "CapEff:\t0000000000000000\n" || r.Code != 0 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// What a program leaves running stays confined.
func TestCase20_BackgroundProcessesStayConfined(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		fifo := func(name string) string {
			path := filepath.Join(p.work, name)
			if err := syscall.Mkfifo(path, 0o666); err != nil {
				t.Fatal(err)
			}
			u.Own(t, path)
			return path
		}
		begin, beginSession, end := fifo("begin"), fifo("begin session"), fifo("end")
		const background = `(
	exec </dev/null >/dev/null 2>&1
	read x <"$3"
	{ LC_ALL=C cat "$1" 2>&1 | sed 's/^.*: //'; cat /proc/self/status; "$4" -c 'cat "$1" || echo; echo again' sh "$1"; } >"$4.out" 2>/dev/null
	echo "group ended" >"$5"
) &
setsid sh -c 'read x <"$1"; { cat "$2" 2>/dev/null || printf refused; echo; echo "session ended"; } >"$3"' sh "$6" "$1" "$5" >/dev/null 2>&1 </dev/null &
exit 0`
		run := func(policy any) (out, session string) {
			shim := launch.Copy(t, p.work, "sh")
			u.Own(t, shim)
			// Open for reading and writing, so that nobody waits for it.
			from, err := os.OpenFile(end, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer from.Close()
			c := p.sh(background, policy)
			c.Args = append(c.Args, begin, shim, end, beginSession)
			r := c.Run(t)
			if r.Code != 0 || r.Stderr != "" {
				t.Fatal(r)
			}
			// The program has ended; now its descendants go on.
			for _, path := range []string{begin, beginSession} {
				if err := os.WriteFile(path, []byte("go\n"), 0); err != nil {
					t.Fatal(err)
				}
			}
			got, buf := "", make([]byte, 4096)
			for !strings.Contains(got, "group ended\n") || !strings.Contains(got, "session ended\n") {
				n, err := from.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got += string(buf[:n])
			}
			data, err := os.ReadFile(shim + ".out")
			if err != nil {
				t.Fatal(err)
			}
			return string(data), got
		}
		out, session := run(nil)
		if !strings.HasPrefix(out, secretText) || !strings.Contains(session, secretText) {
			t.Fatalf("without a policy: %q, %q", out, session)
		}
		out, session = run(p.policy(nil))
		if !strings.HasPrefix(out, "Permission denied\n") || !strings.HasSuffix(out, "\nagain\n") || strings.Contains(out, secretText) || status(t, out, "NoNewPrivs") != "1" ||
			!strings.Contains(session, "refused\n") || strings.Contains(session, secretText) {
			t.Errorf("confined: %q, %q", out, session)
		}
	})
}

func TestPrecreatedDirectoriesAreMade(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		at := func(name string) string { return filepath.Join(p.work, name) }
		u.Mkdir(t, at("there"), 0o751)
		u.Write(t, at("file"), "text", 0o644)
		umask := 0
		c := p.sh(`mkdir "$3/by the program" && : >"$2"`, p.policy(object{"precreate": []string{at("a/b/c"), at("there"), at("a"), at("there/new")}, "report": p.report}))
		c.Args = append(c.Args, at("a/b/c"))
		c.Setup = &launch.Setup{Umask: &umask}
		p.wantStarted(t, c)
		for name, mode := range map[string]os.FileMode{"a": 0o700, "a/b": 0o700, "a/b/c": 0o700, "there": 0o751, "there/new": 0o700} {
			fi, err := os.Stat(at(name))
			if err != nil || !fi.IsDir() || fi.Mode().Perm() != mode || int(fi.Sys().(*syscall.Stat_t).Uid) != u.UID {
				t.Errorf("%s: %v %v, want %v", name, fi, err, mode)
			}
		}
		if rep := launch.Report(t, p.report); !slices.Contains(rep.Precreated, at("a/b/c")) {
			t.Errorf("report %+v", rep)
		}
		for _, bad := range []string{"file", "file/below", "file/below/deeper"} {
			for _, required := range []bool{true, false} {
				p.wantNotStarted(t, p.mark(p.policy(object{"precreate": []string{at(bad)}, "required": required})), 125, "precreate[0]", at(bad))
			}
		}
		if data, err := os.ReadFile(at("file")); err != nil || string(data) != "text" {
			t.Errorf("the file: %q %v", data, err)
		}
		// A directory in what is hidden is made, and stays hidden.
		inside := filepath.Join(p.hidden, "inside")
		c = p.sh(`ls "$1" 2>/dev/null || echo denied`, p.policy(object{"precreate": []string{inside}}))
		c.Args[4] = inside
		if r := c.Run(t); r.Stdout != "denied\n" {
			t.Error(r)
		}
		if _, err := os.Stat(inside); err != nil {
			t.Error(err)
		}
		if u.UID != 0 {
			p.wantNotStarted(t, p.mark(p.policy(object{"precreate": []string{"/sandbox-exec-shim-test"}})), 125, "precreate[0]", "permission denied")
		}
	})
}

// named is the path of a program, its last component as PATH finds it.
func named(t *testing.T, name string) string {
	t.Helper()
	path := launch.Look(t, name)
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(path))
}

// A launch that could change what the next one rests on says so.
func TestReplaceablePartsAreReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		protected := func(c launch.Cmd) []string {
			t.Helper()
			os.Remove(p.report)
			p.wantStarted(t, c)
			var paths []string
			for _, g := range launch.Report(t, p.report).NotEnforced {
				if g.What == "self-protection" {
					if !g.Limit {
						t.Errorf("%+v is not a limit", g)
					}
					paths = append(paths, g.Path)
				}
			}
			slices.Sort(paths)
			return slices.Compact(paths)
		}
		// Where the launch has mounts of its own, they protect all but the directories
		// above: see package nextlaunch.
		mounts := u.UID == 0 && launch.Mounts.Here()
		sh := launch.Look(t, "sh")
		if real, err := filepath.EvalSymlinks(sh); err == nil {
			sh = real
		}
		// The shim of whoever runs the tests, root's program, the user's report.
		want := []string{p.report}
		if u.UID == os.Geteuid() && !mounts { // who runs the tests has installed the shim
			want = append(want, p.bin, p.shim)
		}
		switch {
		case mounts:
			sh = named(t, "sh")
			fallthrough
		case u.UID == 0:
			want = append(want, sh)
		}
		slices.Sort(want)
		if got := protected(p.mark(p.policy(object{"report": p.report}))); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		// The user's own shim in the user's own directory, and policy file.
		mine := u.Mkdir(t, filepath.Join(p.work, "mine"), 0o755)
		shim := launch.Install(t, mine, "sh", launch.Record{Real: launch.Look(t, "sh")})
		u.Own(t, shim)
		file := u.Write(t, filepath.Join(p.work, "policy"), fmt.Sprintf(`{"version":1,"hidden":[%q],"report":%q}`, p.hidden, p.report), 0o600)
		c := p.mark("@" + file)
		c.Path = shim
		switch {
		case mounts:
			want = []string{sh, p.report}
		case u.UID == 0:
			want = []string{mine, shim, file, p.report, sh}
		default:
			want = []string{mine, shim, file, p.report, p.work} // whose search permission is the user's
		}
		slices.Sort(want)
		if got := protected(c); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if mounts {
			return
		}
		// And it is true: what is named can be written.
		c = p.sh(`for f in "$@"; do [ -d "$f" ] && { : >"$f/x" && rm "$f/x"; } || : >>"$f"; done; : >"$2"`, "@"+file)
		c.Path = shim
		c.Args = []string{"sh", "-c", c.Args[2], "sh", p.marker, p.marker, mine, file, p.report}
		p.wantStarted(t, c)
		// What is hidden is protected.
		inside := u.Mkdir(t, filepath.Join(p.hidden, "state"), 0o755)
		p.report = filepath.Join(inside, "report")
		got := protected(p.mark(p.policy(object{"report": p.report})))
		if slices.Contains(got, p.report) {
			t.Errorf("a hidden report is called unprotected: %q", got)
		}
	})
}

// The report and the log are not among what the program inherits, and the
// descriptors of the launcher are.
func TestShimLeavesNoDescriptorOfItsOwn(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		kept, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		hidden, err := os.Open(p.secret)
		if err != nil {
			t.Fatal(err)
		}
		defer hidden.Close()
		c := p.sh("ls /proc/$$/fd; cat <&4 2>/dev/null", p.policy(object{"report": p.report, "log": object{"level": "trace", "to": filepath.Join(p.work, "log")}}))
		c.Extra = []*os.File{kept, hidden}
		r := c.Run(t)
		if strings.Contains(r.Stdout, secretText) || !strings.HasPrefix(r.Stdout, "0\n1\n2\n3\n") || strings.Contains(r.Stdout, "4\n") {
			t.Errorf("descriptors: %v", r)
		}
		rep := launch.Report(t, p.report)
		if len(rep.Descriptors) != 1 || rep.Descriptors[0].FD != 4 || !rep.Descriptors[0].Closed {
			t.Errorf("report %+v", rep.Descriptors)
		}
		c.Policy = nil
		if r := c.Run(t); !bytes.Contains([]byte(r.Stdout), []byte(secretText)) {
			t.Errorf("control: %v", r)
		}
	})
}
