package general_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

const secretText = "the secret of this test"

// A place is a directory with something to hide and somewhere to work.
type place struct {
	u   launch.User
	dir string
	// bin holds the shim sh, installed for the real sh; it is root's.
	bin, shim string
	// hidden is a directory with the readable file secret in it.
	hidden, secret string
	// work is the current directory of the launches; the user's own.
	work string
	// marker is what a program makes to show that it was started.
	marker string
	report string
}

func newPlace(t *testing.T, u launch.User) place {
	t.Helper()
	p := place{u: u, dir: launch.Dir(t)}
	p.bin = filepath.Join(p.dir, "bin")
	if err := os.Mkdir(p.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	p.shim = launch.Install(t, p.bin, "sh", launch.Record{Real: launch.Look(t, "sh")})
	p.hidden = u.Mkdir(t, filepath.Join(p.dir, "hidden"), 0o755)
	p.secret = u.Write(t, filepath.Join(p.hidden, "secret"), secretText, 0o644)
	p.work = u.Mkdir(t, filepath.Join(p.dir, "work"), 0o755)
	p.marker = filepath.Join(p.work, "started")
	p.report = filepath.Join(p.work, "report.json")
	return p
}

type object = map[string]any

// policy hides the hidden directory; more replaces and adds keys.
func (p place) policy(more object) object {
	o := object{"version": 1, "hidden": []string{p.hidden}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

// sh runs a script through the shim. $1 is the secret, $2 the marker.
func (p place) sh(script string, policy any) launch.Cmd {
	c := launch.Shell(p.shim, script, p.secret, p.marker)
	c.User, c.Dir, c.Policy = p.u, p.work, policy
	return c
}

// mark is a launch whose program does nothing but to leave a marker.
func (p place) mark(policy any) launch.Cmd { return p.sh(`: >"$2"`, policy) }

func (p place) started() bool {
	_, err := os.Lstat(p.marker)
	return err == nil
}

func (p place) unmark(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(p.marker); err != nil {
		t.Fatal(err)
	}
}

var (
	oneMessage = regexp.MustCompile(`\Asandbox-exec-shim: [^\n]+\n(sandbox-exec-shim: hint: [^\n]+\n)?\z`)
	oneWarning = regexp.MustCompile(`\Asandbox-exec-shim: [^:\n]+: warning: [^\n]+\n\z`)
)

// wantNotStarted runs a marking launch that must end with code before the
// program, with one message that holds every one of says.
func (p place) wantNotStarted(t *testing.T, c launch.Cmd, code int, says ...string) launch.Result {
	t.Helper()
	p.unmark(t)
	r := c.Run(t)
	if r.Code != code {
		t.Errorf("want exit %d: %v", code, r)
	}
	if r.Stdout != "" {
		t.Errorf("standard output is not empty: %v", r)
	}
	if p.started() {
		t.Errorf("the program was started: %v", r)
	}
	if !oneMessage.MatchString(r.Stderr) {
		t.Errorf("not one message: %q", r.Stderr)
	}
	for _, s := range says {
		if !strings.Contains(r.Stderr, s) {
			t.Errorf("stderr does not say %q: %q", s, r.Stderr)
		}
	}
	return r
}

// wantStarted runs a marking launch that must start its program and say
// nothing.
func (p place) wantStarted(t *testing.T, c launch.Cmd) launch.Result {
	t.Helper()
	p.unmark(t)
	r := c.Run(t)
	if r.Code != 0 || r.Stdout != "" || r.Stderr != "" || !p.started() {
		t.Errorf("want a silent start (marker: %v): %v", p.started(), r)
	}
	return r
}

// readSecret tries to read the secret and says how that went on standard
// output, and nothing anywhere else.
const readSecret = `LC_ALL=C cat "$1" 2>&1 | sed 's/^.*: //'; echo`

const denied = "Permission denied\n\n"

// wantReadable is the positive control: without a policy the secret is read.
func (p place) wantReadable(t *testing.T) {
	t.Helper()
	if r := p.sh(readSecret, nil).Run(t); r.Code != 0 || r.Stdout != secretText+"\n" || r.Stderr != "" {
		t.Fatalf("without a policy the secret must be readable: %v", r)
	}
}

// wantDenied runs the policy and wants the secret denied with EACCES.
func (p place) wantDenied(t *testing.T, c launch.Cmd) launch.Result {
	t.Helper()
	r := c.Run(t)
	if r.Code != 0 || r.Stdout != denied {
		t.Errorf("want the secret denied: %v", r)
	}
	return r
}

// status returns a line of a text in the form of /proc/PID/status.
func status(t *testing.T, text, key string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("no %s in %q", key, text)
	return ""
}
