package escape

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// An attribute is what a first launch changes so that a second one is confined
// less. Landlock has no right for any of it.
type attribute struct {
	change string // of the program's "change" command
	path   string
	hidden bool // it is on the way to what is hidden
	// by is another name of the path for the launch that changes it, "" for none.
	by string
}

// attributes are those that decide whether the shim is found, is executed and
// reads its record and its policy, and whether what is hidden is found.
func attributes() (out []attribute) {
	for _, change := range []string{"0", "0111", "0444", "0644", "0700", "04755", "02755", "0777", "capability", "note", "acl", "owner", "immutable"} {
		out = append(out, attribute{change: change, path: "shims/sh"})
	}
	for _, change := range []string{"0", "0444", "01777", "acl", "owner"} {
		for _, path := range []string{"shims", "shims/deep", "real", "real/sh", "etc", "etc/policy"} {
			out = append(out, attribute{change: change, path: path})
		}
		for _, path := range []string{"task", "way", "way/task", "data", "data/graders", "data/graders/key"} {
			out = append(out, attribute{change: change, path: path, hidden: true})
		}
	}
	// The same file under other names, which what protects one name may leave.
	for _, by := range []string{"link/sh", "mount/sh", "./sh", "/proc/self/fd/3/sh", "/proc/self/fd/4", "/proc/self/root$D/shims/sh"} {
		out = append(out, attribute{change: "0444", path: "shims/sh", by: by})
	}
	return out
}

// A bench is where both launches find a shell: the shim first on PATH, then the
// real one.
type bench struct {
	*yard
	program string
}

func newBench(t *testing.T, u launch.User) *bench {
	t.Helper()
	b := &bench{&yard{dir: u.Dir(t), user: u}, program(t)}
	for _, dir := range []string{"shims", "shims/deep", "real", "etc", "task", "way", "way/task", "data", "data/graders", "ws", "home", "link", "mount"} {
		u.Mkdir(t, b.at(dir), 0o755)
	}
	for link, target := range map[string]string{"task/graders": b.at("data/graders"), "way/task/graders": b.at("data/graders"), "way/there": b.at("way/task/graders")} {
		if err := os.Symlink(target, b.at(link)); err != nil {
			t.Fatal(err)
		}
		u.Own(t, b.at(link))
	}
	u.Write(t, b.at("data/graders/key"), "the hidden text", 0o600)
	u.Own(t, launch.WriteProgram(t, b.at("real/sh"), file(t, "/bin/sh")))
	u.Own(t, launch.Install(t, b.at("shims"), "sh", launch.Record{Real: b.at("real/sh")}))
	if err := os.Link(b.at("shims/sh"), b.at("link/sh")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mount(b.at("shims"), b.at("mount"), "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(b.at("mount"), unix.MNT_DETACH) })
	}
	t.Cleanup(func() { b.restore(t) })
	return b
}

// name is the path that the launch is given.
func (b *bench) name(a attribute) string {
	switch {
	case a.by == "":
		return b.at(a.path)
	case a.by[0] == '.' || a.by[0] == '/':
		return strings.ReplaceAll(a.by, "$D", b.dir)
	}
	return b.at(a.by)
}

// restore makes everything as it was.
func (b *bench) restore(t *testing.T) {
	t.Helper()
	for _, path := range []string{"shims", "real", "etc", "task", "way", "way/task", "data", "data/graders", "data/graders/key", "etc/policy", "shims/deep", "real/sh", "shims/sh"} {
		full := b.at(path)
		if _, err := os.Lstat(full); err != nil {
			continue
		}
		clearAttributes(full)
		b.user.Own(t, full)
		if err := os.Chmod(full, 0o755); err != nil {
			t.Error(err)
		}
	}
	_ = os.Remove(b.at("home/outside"))
}

// clearAttributes takes away what chmod and chown do not.
func clearAttributes(path string) {
	if fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		if flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS); err == nil && flags&0x10 != 0 {
			_ = unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^0x10)
		}
		unix.Close(fd)
	}
	for _, name := range []string{"system.posix_acl_access", "security.capability", "user.note"} {
		_ = unix.Removexattr(path, name)
	}
}

// try runs a script with what the name sh leads to on PATH, as a harness does: the
// shims' directory and the shim are open at 3 and 4.
func (b *bench) try(t *testing.T, policy, dir, script string) launch.Result {
	t.Helper()
	shims, err := os.Open(b.at("shims"))
	if err != nil {
		t.Fatal(err)
	}
	defer shims.Close()
	shim, err := os.Open(b.at("shims/sh"))
	if err != nil {
		t.Fatal(err)
	}
	defer shim.Close()
	c := launch.Cmd{
		Path: launch.Look(t, "env"), Args: []string{"env", "sh", "-c", script}, User: b.user, Dir: b.at(dir), Extra: []*os.File{shims, shim},
		Env: []string{"PATH=" + b.at("shims") + ":" + b.at("real") + ":/usr/bin:/bin", "HOME=" + b.at("home"), "TMPDIR=/nonexistent"},
	}
	if policy != "" {
		c.Policy = policy
	}
	return c.Run(t)
}

// escapes reports whether a second launch, with the policy of the first, reaches
// anything that the policy denies. It undoes what the first has shut.
func (b *bench) escapes(t *testing.T, policy string, a attribute) bool {
	t.Helper()
	path := b.at(a.path)
	r := b.try(t, policy, "ws", `chmod 755 "`+path+`"; cat "`+b.at("data/graders/key")+`"; echo x >"`+b.at("home/outside")+`"`)
	_, err := os.Stat(b.at("home/outside"))
	return err == nil && strings.Contains(policy, "workspace") || strings.Contains(r.Stdout, "the hidden text")
}

// TestAttributes: no attribute that a first launch changes leaves a second one
// less confined.
func TestAttributes(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.ABIAtLeast(3))
	broken, documented := map[string]bool{}, false
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		ownMachine(t)
		b := newBench(t, u)
		q := func(text string) string { return strings.ReplaceAll(text, "$D", b.dir) }
		policies := map[string]string{
			"hidden":       q(`{"version":1,"hidden":["$D/data/graders"]}`),
			"hidden link":  q(`{"version":1,"hidden":["$D/task/graders"]}`),
			"hidden links": q(`{"version":1,"hidden":["$D/way/there"]}`),
			"workspace": q(`{"version":1,"scope":"workspace","workspace":"$D/ws","toolchainDirs":false,` +
				`"hidden":["$D/task/graders"],"network":"deny"}`),
			"file": "@" + b.at("etc/policy"),
		}
		u.Write(t, b.at("etc/policy"), policies["workspace"], 0o644)
		counted, denied, harmless := 0, 0, 0
		for _, name := range slices.Sorted(maps.Keys(policies)) {
			policy := policies[name]
			if b.escapes(t, policy, attribute{path: "ws"}) {
				t.Fatalf("%s: the launch is not confined at all", name)
			}
			for _, a := range attributes() {
				if strings.Contains(name, "link") && !a.hidden || name == "file" && !strings.HasPrefix(a.path, "etc") {
					continue // as under the others
				}
				change, dir := `exec "`+b.program+`" change `+a.change+` "`+b.name(a)+`"`, "ws"
				if a.by == "./sh" {
					dir = "shims"
				}
				// The control: what is done without a policy leaves the next launch
				// unconfined, or it is nothing to be denied.
				free := b.try(t, "", dir, change)
				harm := free.Code == 0 && b.escapes(t, policy, a)
				b.restore(t)
				if !harm {
					harmless++
					continue
				}
				counted++
				first := b.try(t, policy, dir, change)
				escaped := b.escapes(t, policy, a)
				b.restore(t)
				what := a.change + " " + a.path + " under " + name
				if a.by != "" {
					what += " by " + a.by
				}
				switch {
				case !escaped:
					denied++
				case u.UID != 0 && strings.HasPrefix(a.path, "shims"):
					documented = true
				default:
					broken[what] = true
					if openAttributes[what] == 0 {
						t.Errorf("%s: the next launch is not confined (%v)", what, first)
					}
				}
			}
		}
		t.Logf("%d changes that weaken the next launch: %d denied or of no effect in a launch; %d others weaken nothing", counted, denied, harmless)
	})
	if slices.Contains(headings(t), ownShim) != documented {
		t.Errorf("SECURITY.md has the heading %q: %v, and such shims are unprotected: %v", ownShim, !documented, documented)
	}
	for _, what := range slices.Sorted(maps.Keys(openAttributes)) {
		if !broken[what] && os.Geteuid() == 0 {
			t.Errorf("%s is listed as open, and is not", what)
		}
	}
}

// ownShim is the heading about shims that nothing protects from their owner.
const ownShim = "A shim that its user owns"
