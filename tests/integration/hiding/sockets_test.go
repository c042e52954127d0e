package hiding

import (
	"bufio"
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// serve answers whoever connects to a socket with the content of a file, as a
// service does that acts for others.
func (w *world) serve(t *testing.T, path, file string) {
	t.Helper()
	l, err := net.Listen("unix", w.at(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Chmod(w.at(path), 0o777); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if line, _ := bufio.NewReader(c).ReadString('\n'); line == "read\n" {
				data, _ := os.ReadFile(w.at(file))
				_, _ = c.Write(data)
			}
			c.Close()
		}
	}()
}

// A unix socket at a hidden path cannot be connected to where the kernel checks
// that, and the report says where it does not.
func TestSocketAtAHiddenPath(t *testing.T) {
	launch.Need(t, launch.Landlock)
	denies := launch.Has(launch.ABIAtLeast(9))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.serve(t, "$W/secret/socket", "$W/work/f")
		w.serve(t, "$W/work/socket", "$W/work/f")
		tries := []try{{"connect", "$W/secret/socket", ""}, {"connect", "$W/work/socket", ""}}
		if d := cmp.Diff([]string{ok, ok}, errnos(w.free(t, tries...))); d != "" {
			t.Errorf("without a policy: -want +got:\n%s", d)
		}
		want := ok
		if denies {
			want = denied
		}
		out, r := w.held(t, hideSecret, tries...)
		if d := cmp.Diff([]string{want, ok}, errnos(out)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		if launch.Enforced(r, "unix-socket") != denies || (len(launch.NotEnforced(r, "unix-socket")) == 1) == denies {
			t.Errorf("the report: %+v, %+v", r.Enforced, r.NotEnforced)
		}
	})
}

// The right to connect by path is asked of kernels that have it, and of no other.
func TestSocketsByPathAreAskedOfTheKernel(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.Seccomp)
	const resolveUnix = 1 << 16 // LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	w := newWorld(t, launch.Current())
	for _, row := range []struct {
		policy, what string
		version      int
		want         bool
	}{
		{hideSecret, "unix-socket", 9, true},
		{hideSecret, "unix-socket", 8, false},
		{`{"version":1,"isolate":["unix-sockets"]}`, "unix-sockets-by-path", 9, true},
		{`{"version":1,"hidden":["$W/secret"],"isolate":["unix-sockets"]}`, "unix-sockets-by-path", 8, false},
	} {
		var handled uint64
		c := w.command(t, w.policy(t, row.policy), nil)
		c.FakeABI = &launch.ABI{Version: row.version, Errata: 7, Handled: &handled}
		w.results(t, c.Run(t), 0)
		if got := handled&resolveUnix != 0; got != row.want {
			t.Errorf("%s, ABI %d: the ruleset handles %#x", row.policy, row.version, handled)
		}
		if r := w.report(t); launch.Enforced(r, row.what) != row.want || (len(launch.NotEnforced(r, row.what)) == 1) == row.want {
			t.Errorf("%s, ABI %d: %+v, %+v", row.policy, row.version, r.Enforced, r.NotEnforced)
		}
	}
}

// A process outside that reads for whoever asks reads what is hidden, too. The
// report says so, and the program cannot read it itself.
func TestServicesOutsideAreALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.serve(t, "$W/work/socket", "$W/secret/f")
		out, r := w.held(t, hideSecret, try{"ask", "$W/work/socket", ""}, try{"read", "$W/secret/f", ""})
		if out[0].Data != secret || out[1].Errno != denied {
			t.Errorf("by the service, and without it: %+v", out)
		}
		wantLimit(t, r, "outside")
	})
}
