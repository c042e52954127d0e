package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// The table of what fails outside of the roots, and with which errno. In a
// path, {dir} is the directory that the row is tried in, {name} its last
// component, and {ws} a directory in the workspace.
//
// Each row is tried in three ways: outside under the policy, where it must
// give what the row says; outside without the policy, and in the workspace
// under it. Both must work.
var deniedOutside = []struct {
	name string
	try  try
	want string
}{
	{"create", try{"create", "{dir}/new", ""}, "EACCES"},
	{"create in a subdirectory", try{"create", "{dir}/dir/new", ""}, "EACCES"},
	{"create through ..", try{"create", "{dir}/../{name}/new", ""}, "EACCES"},
	{"create by a descriptor", try{"create-at", "{dir}/dir", "new"}, "EACCES"},
	{"create after chdir", try{"create-in", "{dir}/dir", "new"}, "EACCES"},
	{"nameless file", try{"tmpfile", "{dir}", ""}, "EACCES"},
	{"write", try{"write", "{dir}/file", ""}, "EACCES"},
	{"read and write", try{"read-write", "{dir}/file", ""}, "EACCES"},
	{"append", try{"append", "{dir}/file", ""}, "EACCES"},
	{"O_CREAT of what is there", try{"create-or", "{dir}/file", ""}, "EACCES"},
	{"O_TRUNC", try{"open-truncate", "{dir}/file", ""}, "EACCES"},
	{"O_TRUNC and read", try{"read-truncate", "{dir}/file", ""}, "EACCES"},
	{"truncate", try{"truncate", "{dir}/file", ""}, "EACCES"},
	{"write what was opened to read", try{"reopen", "{dir}/file", ""}, "EACCES"},
	{"mkdir", try{"mkdir", "{dir}/new", ""}, "EACCES"},
	{"rmdir", try{"rmdir", "{dir}/empty", ""}, "EACCES"},
	{"unlink", try{"unlink", "{dir}/file", ""}, "EACCES"},
	{"mknod of a file", try{"file-node", "{dir}/new", ""}, "EACCES"},
	{"mknod of a FIFO", try{"fifo", "{dir}/new", ""}, "EACCES"},
	{"bind of a socket", try{"socket", "{dir}/new", ""}, "EACCES"},
	{"symlink", try{"symlink", "{dir}/new", "/etc/passwd"}, "EACCES"},
	{"rename", try{"rename", "{dir}/file", "{dir}/new"}, "EACCES"},
	{"rename over", try{"rename", "{dir}/file", "{dir}/other"}, "EACCES"},
	{"rename of a directory", try{"rename", "{dir}/dir", "{dir}/new"}, "EACCES"},
	{"exchange", try{"exchange", "{dir}/file", "{dir}/other"}, "EACCES"},
	{"link", try{"link", "{dir}/file", "{dir}/new"}, "EACCES"},
}

// deniedAcross are rows that have one end outside and one in the workspace.
// Without the policy they must work.
var deniedAcross = []struct {
	name string
	try  try
	want string
}{
	{"move in", try{"rename", "{dir}/file", "{ws}/new"}, "EACCES"},
	{"move in over", try{"rename", "{dir}/file", "{ws}/file"}, "EACCES"},
	{"move a directory in", try{"rename", "{dir}/dir", "{ws}/new"}, "EACCES"},
	{"move out", try{"rename", "{ws}/file", "{dir}/new"}, "EACCES"},
	{"move out over", try{"rename", "{ws}/file", "{dir}/file"}, "EACCES"},
	{"move a directory out", try{"rename", "{ws}/dir", "{dir}/new"}, "EACCES"},
	{"exchange", try{"exchange", "{ws}/file", "{dir}/file"}, "EACCES"},
	{"link out", try{"link", "{ws}/file", "{dir}/new"}, "EACCES"},
	// A link to a file outside would make it writable.
	{"link in", try{"link", "{dir}/file", "{ws}/new"}, "EXDEV"},

	{"write by a symlink", try{"write", "{ws}/to-file", ""}, "EACCES"},
	{"truncate by a symlink", try{"truncate", "{ws}/to-file", ""}, "EACCES"},
	{"create by a symlink", try{"create-or", "{ws}/to-new", ""}, "EACCES"},
	{"create by a symlink to a directory", try{"create", "{ws}/to-dir/new", ""}, "EACCES"},
	{"mkdir by a symlink to a directory", try{"mkdir", "{ws}/to-dir/new", ""}, "EACCES"},
	{"create by a chain of symlinks", try{"create", "{ws}/to-link/new", ""}, "EACCES"},
	{"create by /proc/self/root", try{"create", "/proc/self/root{dir}/new", ""}, "EACCES"},
	{"create by /proc/self/cwd", try{"create", "/proc/self/cwd/../outside/{name}/new", ""}, "EACCES"},
}

func (tr try) in(dir, ws string) try {
	r := strings.NewReplacer("{dir}", dir, "{name}", filepath.Base(dir), "{ws}", ws)
	return try{tr.Op, r.Replace(tr.Path), r.Replace(tr.To)}
}

// dirs makes a directory with the usual files for each of n rows.
func (p *place) dirs(t *testing.T, top, prefix string, n int) []string {
	t.Helper()
	var out []string
	for i := range n {
		dir := p.u.Mkdir(t, filepath.Join(top, prefix+strconv.Itoa(i)), 0o755)
		p.fill(t, dir)
		out = append(out, dir)
	}
	return out
}

func TestWritingOutsideIsDenied(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		n := len(deniedOutside)
		confined, free, inside := p.dirs(t, p.outside, "c", n), p.dirs(t, p.outside, "f", n), p.dirs(t, p.ws, "w", n)
		var tries [3][]try
		for i, row := range deniedOutside {
			for k, dir := range []string{confined[i], free[i], inside[i]} {
				tries[k] = append(tries[k], row.try.in(dir, p.ws))
			}
		}
		outside := p.try(t, p.policy(nil), tries[0]...)
		without := p.try(t, nil, tries[1]...)
		within := p.try(t, p.policy(nil), tries[2]...)
		for i, row := range deniedOutside {
			t.Run(row.name, func(t *testing.T) {
				if outside[i] != row.want {
					t.Errorf("outside: %s, want %s", outside[i], row.want)
				}
				if without[i] != ok {
					t.Errorf("outside, without a policy: %s", without[i])
				}
				if within[i] != ok {
					t.Errorf("in the workspace: %s", within[i])
				}
				if diff := cmp.Diff(filled, contents(t, confined[i])); diff != "" {
					t.Errorf("the directory outside changed (-want +got)\n%s", diff)
				}
			})
		}
	})
}

func TestMovingInAndOutIsDenied(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		n := len(deniedAcross)
		confined, free := p.dirs(t, p.outside, "c", n), p.dirs(t, p.outside, "f", n)
		ends := map[string][]string{"c": p.dirs(t, p.ws, "c", n), "f": p.dirs(t, p.ws, "f", n)}
		var tries [2][]try
		for i, row := range deniedAcross {
			for k, dir := range []string{confined[i], free[i]} {
				ws := ends[[]string{"c", "f"}[k]][i]
				symlink(t, filepath.Join(dir, "file"), filepath.Join(ws, "to-file"))
				symlink(t, filepath.Join(dir, "new"), filepath.Join(ws, "to-new"))
				symlink(t, filepath.Join(dir, "dir"), filepath.Join(ws, "to-dir"))
				symlink(t, "to-dir", filepath.Join(ws, "to-link"))
				tries[k] = append(tries[k], row.try.in(dir, ws))
			}
		}
		with := p.try(t, p.policy(nil), tries[0]...)
		without := p.try(t, nil, tries[1]...)
		for i, row := range deniedAcross {
			t.Run(row.name, func(t *testing.T) {
				if with[i] != row.want {
					t.Errorf("%s, want %s", with[i], row.want)
				}
				if without[i] != ok {
					t.Errorf("without a policy: %s", without[i])
				}
				if diff := cmp.Diff(filled, contents(t, confined[i])); diff != "" {
					t.Errorf("the directory outside changed (-want +got)\n%s", diff)
				}
			})
		}
	})
}

// filled is what [place.fill] leaves.
var filled = map[string]string{"file": "text", "other": "text", "dir": "", "dir/in": "text", "empty": ""}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range tree(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, syscall.EISDIR) {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

// What exists already is said to exist, also where nothing can be made: mkdir -p
// depends on it.
func TestWhatIsThereIsSaidToExist(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.want(t, p.policy(nil), map[try]string{
			{Op: "mkdir", Path: filepath.Join(p.outside, "dir")}:  "EEXIST",
			{Op: "mkdir", Path: filepath.Join(p.outside, "new")}:  "EACCES",
			{Op: "unlink", Path: filepath.Join(p.outside, "new")}: "ENOENT",
			{Op: "read", Path: filepath.Join(p.outside, "new")}:   "ENOENT",
		})
		p.run(t, p.policy(nil), `mkdir -p "$HOME/.cache" ../outside/dir deep/er`)
	})
}

// No right that makes device nodes is granted anywhere; without a policy root
// may.
func TestNoDeviceNodesAreMade(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	p := newPlace(t, launch.Root)
	device := try{Op: "device", Path: filepath.Join(p.ws, "null")}
	got := p.try(t, m{"version": 1, "scope": "workspace", "workspace": p.ws, "capabilities": "keep"}, device, try{Op: "fifo", Path: filepath.Join(p.ws, "fifo")})
	if got[0] != "EACCES" || got[1] != ok {
		t.Errorf("mknod of a device: %s, want EACCES; of a FIFO: %s", got[0], got[1])
	}
	if got := p.try(t, nil, device); got[0] != ok {
		t.Errorf("without a policy: %s", got[0])
	}
}

// The devices that programs need, and others.
func TestOrdinaryDevicesAreWritable(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.want(t, p.policy(nil), map[try]string{
			{Op: "write", Path: "/dev/null"}:                     ok,
			{Op: "open-truncate", Path: "/dev/null"}:             ok,
			{Op: "read-write", Path: "/dev/zero"}:                ok,
			{Op: "write", Path: "/dev/full"}:                     ok,
			{Op: "read-write", Path: "/dev/ptmx"}:                ok,
			{Op: "read", Path: "/dev/urandom"}:                   ok,
			{Op: "write", Path: "/dev/urandom"}:                  "EACCES",
			{Op: "create", Path: "/dev/shim-test-x"}:             "EACCES",
			{Op: "create", Path: "/dev/shm/shim-test-" + u.Name}: ok,
		})
		p.run(t, p.policy(nil), "rm /dev/shm/shim-test-"+u.Name+" && head -c1 /dev/urandom >/dev/null")
	})
}
