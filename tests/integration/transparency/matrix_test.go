package transparency

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/transparency/bare"
)

const policyVariable = "SANDBOX_EXEC_SHIM_POLICY"

// Policies of ways. A blank one takes the runtime path and asks for nothing.
const (
	policyBlank      = " "
	policyRestricted = "hidden"
	policyKeep       = "hidden, capabilities kept"
)

// A way is how the witness is reached.
type way struct {
	name    string
	shim    string // the file that is started
	policy  string // of the constants above, or "" for none
	inPlace bool
	// search means that the shim has no record, and finds its program on PATH.
	search bool
}

// A stage holds what the ways need, for one user.
type stage struct {
	user   launch.User
	dir    string
	direct string
	ways   []way
	hidden string
	caller *bare.Caller
	out    string
	path   string
}

func newStage(t *testing.T, u launch.User) *stage {
	t.Helper()
	s := &stage{user: u, dir: u.Dir(t)}
	sub := func(name string) string { return u.Mkdir(t, filepath.Join(s.dir, name), 0o755) }
	real, recorded, copied, inPlace, work := sub("real"), sub("recorded"), sub("copied"), sub("inplace"), sub("work")
	s.hidden = u.Write(t, filepath.Join(sub("hidden"), "secret"), "secret", 0o644)
	if err := os.Chmod(work, 0o777); err != nil { // one row of root's changes the user
		t.Fatal(err)
	}
	s.out = filepath.Join(work, "out")
	s.direct = bare.Witness.Install(t, real, "witness")
	s.caller = bare.NewCaller(t, work)
	s.path = "PATH=" + strings.Join([]string{copied, real}, ":")

	rec := launch.Install(t, recorded, "witness", launch.Record{Real: s.direct})
	plain := launch.Copy(t, copied, "witness")
	inside := launch.Install(t, inPlace, "witness", launch.Record{
		Real: bare.Witness.Install(t, inPlace, "witness.shim-real"), InPlace: true,
	})
	s.ways = []way{
		{name: "pass-through", shim: rec},
		{name: "runtime, blank policy", shim: rec, policy: policyBlank},
		{name: "runtime, by PATH", shim: plain, search: true},
		{name: "policy", shim: rec, policy: policyRestricted},
		{name: "policy, capabilities kept", shim: rec, policy: policyKeep},
		{name: "policy, by PATH", shim: plain, policy: policyRestricted, search: true},
		{name: "in place, pass-through", shim: inside, inPlace: true},
		{name: "in place, policy", shim: inside, policy: policyRestricted, inPlace: true},
	}
	return s
}

// policy returns the value of the policy variable.
func (s *stage) policy(t *testing.T, name string) string {
	t.Helper()
	if name == policyBlank {
		return " \t"
	}
	p := map[string]any{"version": 1, "hidden": []string{filepath.Dir(s.hidden)}}
	if name == policyKeep {
		p["capabilities"] = "keep"
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// through changes a state so that its program is reached by the way.
func (s *stage) through(t *testing.T, state bare.State, w way) bare.State {
	t.Helper()
	state.Path = w.shim
	if w.policy != "" {
		at := len(state.Env) / 2
		state.Env = slices.Insert(slices.Clone(state.Env), at, policyVariable+"="+s.policy(t, w.policy))
	}
	return state
}

// account starts a witness and returns what it wrote.
func (s *stage) account(t *testing.T, r row, state bare.State) bare.Account {
	t.Helper()
	os.Remove(s.out)
	said, err := os.OpenFile(filepath.Join(s.dir, "said"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	files := []*os.File{null, null, said}
	if r.files != nil {
		more := r.files(t, s.user)
		files = append(files, more...)
		defer func() {
			for _, f := range more {
				if f != nil {
					f.Close()
				}
			}
		}()
	}
	p := s.caller.Start(t, state, files, &syscall.SysProcAttr{})
	end, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(said.Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 0 || !end.Success() {
		t.Fatalf("%s: %v; stderr %q", state.Path, end, text)
	}
	data, err := os.ReadFile(s.out)
	if err != nil {
		t.Fatal(err)
	}
	a, err := bare.ParseAccount(bytes.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The transparency matrix: every state, by every way, for both users. The rows
// about signals are those of case 9.
func TestProgramGetsWhatTheCallerGave(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		s := newStage(t, u)
		rows := slices.Concat(pendingRows(), descriptorRows(), environmentRows(), argumentRows(), processRows(t, s.dir+"/work"))
		rows = append(rows, terminalRow(t))
		runRows(t, s, rows)
	})
}

// A parent ignores or blocks any set of signals: the program has the same
// dispositions and the same mask.
func TestCase09_DispositionsAndMaskAreExact(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) { runRows(t, newStage(t, u), signalRows(random(t))) })
}

func runRows(t *testing.T, s *stage, rows []row) {
	t.Helper()
	for _, r := range rows {
		if r.root && s.user != launch.Root {
			continue
		}
		t.Run(r.name, func(t *testing.T) { s.compare(t, r) })
	}
}

// compare runs one row directly, twice, and then by every way.
func (s *stage) compare(t *testing.T, r row) {
	t.Helper()
	state := bare.NewState(s.direct, "witness", s.out)
	state.Env = []string{s.path, "A=1", "HOME=" + launch.Nowhere}
	if s.user.UID != os.Geteuid() {
		state.UID = uint64(s.user.UID)
	}
	r.change(&state)

	direct := s.account(t, r, state)
	if r.check != nil {
		if err := r.check(direct); err != nil {
			t.Fatalf("the caller does not hand over what it should: %v", err)
		}
	}
	report := func(name string, got bare.Account, w way) {
		t.Helper()
		diffs, err := compare(direct, got, allowedIn(w, s.user))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range diffs {
			t.Errorf("%s: %s", name, d)
		}
	}
	report("a second direct start", s.account(t, r, state), way{})
	for _, w := range s.ways {
		if w.search && !slices.Contains(state.Env, s.path) {
			continue
		}
		got := s.account(t, r, s.through(t, state, w))
		report(w.name, got, w)
		if confined := w.policy != "" && w.policy != policyBlank; confined != (got.Status("NoNewPrivs") == "1" && direct.Status("NoNewPrivs") == "0") && state.NoNewPrivs != 1 {
			t.Errorf("%s: no_new_privs is %s: the shim did not do what the way is for", w.name, got.Status("NoNewPrivs"))
		}
	}
}
