package nextlaunch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

func TestMain(m *testing.M) { launch.Main(m) }

// object is a JSON object.
type object = map[string]any

// A stage is a shim in a directory of shims, before a program of the same name, with
// something hidden.
type stage struct {
	user                     launch.User
	dir, shims, real, secret string
	policyFile, report       string
	inPlace                  bool
}

func newStage(t *testing.T, u launch.User, inPlace bool) *stage {
	t.Helper()
	dir := u.Dir(t)
	s := &stage{user: u, dir: dir, inPlace: inPlace, report: filepath.Join(dir, "report")}
	s.shims = u.Mkdir(t, filepath.Join(dir, "shims"), 0o755)
	bin := u.Mkdir(t, filepath.Join(dir, "bin"), 0o755)
	hidden := u.Dir(t) // beside, or the rest would be frozen
	s.secret = u.Write(t, filepath.Join(hidden, "key"), "TOPSECRET\n", 0o644)
	data, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	at := s.shims
	if s.real = filepath.Join(bin, "sh"); inPlace {
		at = bin
		s.real += ".shim-real"
	}
	u.Own(t, launch.WriteProgram(t, s.real, data))
	u.Own(t, launch.Install(t, at, "sh", launch.Record{Real: s.real, InPlace: inPlace}))
	s.policyFile = u.Write(t, filepath.Join(dir, "policy.json"), `{"version":1,"hidden":["`+hidden+`"],"report":"`+s.report+`"}`, 0o644)
	return s
}

// shim is where the shim stands.
func (s *stage) shim() string {
	if s.inPlace {
		return strings.TrimSuffix(s.real, ".shim-real")
	}
	return filepath.Join(s.shims, "sh")
}

// launch starts sh as a harness does that has the shims in front of its PATH.
func (s *stage) launch(script string, policy any) launch.Cmd {
	r := strings.NewReplacer("$SHIMS", s.shims, "$SHIM", s.shim(), "$REAL", s.real, "$POLICY", s.policyFile, "$SECRET", s.secret, "$DIR", s.dir)
	path := s.shims + ":" + filepath.Dir(s.real) + ":/usr/local/bin:/usr/bin:/bin"
	return launch.Cmd{
		Path: "/usr/bin/env", Args: []string{"env", "sh", "-c", r.Replace(script)}, User: s.user, Policy: policy,
		Env: []string{"PATH=" + path, "HOME=/nonexistent", "LC_ALL=C"},
	}
}

// last is the newest report.
func (s *stage) last(t *testing.T) report.Report {
	t.Helper()
	all := launch.Reports(t, s.report)
	if len(all) == 0 {
		t.Fatal("no report")
	}
	return all[len(all)-1]
}

// gap returns why a report says that something does not hold at a path, or "".
func gap(r report.Report, what, path string) string {
	for _, g := range r.NotEnforced {
		if g.What == what && (path == "" || g.Path == path) {
			return g.Why
		}
	}
	return ""
}

// by returns what enforces something, or "".
func by(r report.Report, what string) string {
	for _, e := range r.Enforced {
		if e.What == what {
			return e.By
		}
	}
	return ""
}

// noAdmin is a launcher without CAP_SYS_ADMIN, as in a usual container.
var noAdmin = &launch.Setup{DropBounding: []int{unix.CAP_SYS_ADMIN}}
