package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/pathcheck"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/rules"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/errnotest"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/internal/planner"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/child"
)

// An oldProc is the /proc that a child finds.
type oldProc struct {
	// Options are those of the file system, Flags those of the mount; nothing is
	// mounted for "".
	Options string
	Flags   uintptr
	// Shared makes all mounts shared, Mask covers a file of /proc, Elsewhere mounts
	// another proc file system, Dir becomes the current directory.
	Shared               bool
	Mask, Elsewhere, Dir string
	// Fail makes a system call fail with ENOMEM.
	Fail uintptr
}

type newProcState struct {
	Kernel      rules.Kernel
	Root, Proc  string // lines of the table of mounts
	Masked      bool
	Here, There uint64 // devices of the current directory and /proc
	Files       int    // open descriptors that the replacement left
}

// procChild replaces the /proc of a mount namespace of its own.
func procChild(in []byte) (any, error) {
	var o oldProc
	if err := json.Unmarshal(in, &o); err != nil {
		return nil, err
	}
	if err := errors.Join(ownNamespace(), o.make()); err != nil {
		return nil, err
	}
	before, err := openDescriptors()
	if err != nil {
		return nil, err
	}
	if o.Fail != 0 {
		if err := errnotest.Fail(errnotest.Call{Nr: o.Fail}, unix.ENOMEM); err != nil {
			return nil, err
		}
	}
	var out newProcState
	out.Kernel = procOf(&rules.Policy{Isolate: rules.IsolateProc}, rules.Kernel{ABI: 1}, entered)
	after, err := openDescriptors()
	if err != nil {
		return nil, err
	}
	out.Files = len(after) - len(before)
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(table)) {
		switch f := strings.Fields(line); f[4] {
		case "/":
			out.Root = line
		case "/proc":
			out.Proc = line
		}
	}
	var mask unix.Stat_t
	out.Masked = unix.Stat(o.Mask, &mask) == nil && mask.Mode&unix.S_IFMT == unix.S_IFCHR
	var here, there unix.Stat_t
	if err := errors.Join(unix.Stat(".", &here), unix.Stat("/proc", &there)); err != nil {
		return nil, err
	}
	out.Here, out.There = uint64(here.Dev), uint64(there.Dev)
	return out, nil
}

func (o oldProc) make() error {
	mount := func(source, at, kind string, flags uintptr, data string) error {
		if err := unix.Mount(source, at, kind, flags, data); err != nil {
			return fmt.Errorf("mount %s: %w", at, err)
		}
		return nil
	}
	var all []error
	if o.Shared {
		// Open, so that these mounts outlive the thread's stay among them.
		_, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		all = append(all, err, mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""))
	}
	if o.Options != "" {
		all = append(all, mount("old", "/proc", "proc", o.Flags, o.Options))
	}
	if o.Mask != "" {
		all = append(all, mount("/dev/null", o.Mask, "", unix.MS_BIND, ""))
	}
	if o.Elsewhere != "" {
		all = append(all, mount("proc", o.Elsewhere, "proc", 0, ""))
	}
	if o.Dir != "" {
		all = append(all, unix.Chdir(o.Dir))
	}
	return errors.Join(all...)
}

func replace(t *testing.T, o oldProc) newProcState {
	t.Helper()
	child.Root(t)
	var out newProcState
	child.Run(t, 0, "proc", o, &out)
	return out
}

// The new /proc hides what the domain may not trace, and gives nothing that the old
// one took: its options are carried over.
func TestPrivateProcKeepsTheOptionsOfTheOld(t *testing.T) {
	got := replace(t, oldProc{
		Options: "gid=77,subset=pid,hidepid=noaccess",
		Flags:   unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME,
	})
	if !got.Kernel.PrivateProc {
		t.Fatalf("%+v", got.Kernel)
	}
	before, after, ok := strings.Cut(strings.TrimSpace(got.Proc), " - ")
	if !ok {
		t.Fatal(got.Proc)
	}
	mount, super := strings.Split(strings.Fields(before)[5], ","), strings.Fields(after)
	for _, want := range []string{"ro", "nosuid", "nodev", "noexec", "noatime"} {
		if !slices.Contains(mount, want) {
			t.Errorf("the mount is not %s: %q", want, mount)
		}
	}
	for _, want := range []string{"ro", "gid=77", "hidepid=ptraceable", "subset=pid"} {
		if !slices.Contains(strings.Split(super[2], ","), want) {
			t.Errorf("the file system is not %s: %q", want, super)
		}
	}
	if super[1] != "old" {
		t.Errorf("its source is %q", super[1])
	}
	plain := replace(t, oldProc{Options: "hidepid=off"})
	if _, super, _ := strings.Cut(plain.Proc, " - "); !strings.Contains(super, "rw,hidepid=ptraceable") {
		t.Errorf("%s", plain.Proc)
	}
}

// Mounts made outside still arrive inside, and none made inside gets out.
func TestPrivateProcStaysInside(t *testing.T) {
	got := replace(t, oldProc{Shared: true})
	if !got.Kernel.PrivateProc || !strings.Contains(got.Root, " master:") || strings.Contains(got.Root, " shared:") {
		t.Errorf("%+v, %s", got.Kernel, got.Root)
	}
}

// What stood on the old /proc stands on the new one, and nothing of the old one is
// left: no current directory, no descriptor.
func TestPrivateProcKeepsItsMasks(t *testing.T) {
	const mask = "/proc/version"
	got := replace(t, oldProc{Mask: mask, Dir: "/proc/sys/kernel", Options: "hidepid=off"})
	if !got.Kernel.PrivateProc || !got.Masked || got.Here != got.There || got.Files != 0 {
		t.Errorf("%+v", got)
	}
	elsewhere := child.Dir(t)
	if got := replace(t, oldProc{Elsewhere: elsewhere}); got.Kernel.ProcElsewhere != elsewhere || !got.Kernel.PrivateProc {
		t.Errorf("another /proc is not seen: %+v", got.Kernel)
	}
	if got := replace(t, oldProc{}); got.Kernel.ProcElsewhere != "" || got.Masked {
		t.Errorf("%+v", got)
	}
}

func TestMountAttributes(t *testing.T) {
	for opt, want := range map[string]int{
		"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 0x10, "nodiratime": 0x80, "nosymfollow": 0x200000, // linux/mount.h
		"rw": 0, "relatime": 0, "": 0,
	} {
		if got := mountAttribute(opt); got != want {
			t.Errorf("%s: %#x, want %#x", opt, got, want)
		}
	}
}

// An option that is not known could take something away.
func TestUnknownOptionOfProc(t *testing.T) {
	child.Root(t)
	for super, want := range map[string]error{
		"rw": nil, "rw,hidepid=2,seclabel": nil, "rw,later=1": errors.ErrUnsupported, "rw,gid=none": unix.EINVAL,
	} {
		fd, err := newProc(pathcheck.Mount{Source: "proc", Super: super, Options: "rw"})
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", super, err, want)
		}
	}
}

// Only the mount point of a whole proc file system is replaced, with what stands
// on it.
func TestFindProc(t *testing.T) {
	table, err := planner.MountTable(nil)
	errnotest.Must(t, err)
	at := slices.IndexFunc(table, func(m pathcheck.Mount) bool { return m.Point == "/proc" && m.FSType == "proc" })
	if at < 0 {
		child.Unavailable(t, "/proc is no mount point")
	}
	with := func(f func(m *pathcheck.Mount), more ...pathcheck.Mount) pathcheck.Mounts {
		out := slices.Clone(table)
		f(&out[at])
		return append(out, more...)
	}
	same := func(*pathcheck.Mount) {}
	old, subs, elsewhere, err := findProc(table)
	if err != nil || old.ID != table[at].ID || elsewhere != "" {
		t.Errorf("%+v, %v, %q, %v", old, subs, elsewhere, err)
	}
	on := pathcheck.Mount{ID: 1 << 20, Parent: old.ID, Point: "/proc/x", FSType: "tmpfs"}
	if _, more, _, err := findProc(with(same, on, on)); err != nil || len(more) != len(subs)+1 {
		t.Errorf("mounts on it: %v, %v", more, err)
	}
	other := pathcheck.Mount{ID: 1 << 20, Point: "/jail/proc", FSType: "proc", Root: "/"}
	if _, _, elsewhere, err := findProc(with(same, other)); err != nil || elsewhere != other.Point {
		t.Errorf("another: %q, %v", elsewhere, err)
	}
	many := make([]pathcheck.Mount, maxSubmounts+1)
	for i := range many {
		many[i] = on
		many[i].Point += fmt.Sprint(i)
	}
	for name, bad := range map[string]pathcheck.Mounts{
		"a part of one":     with(func(m *pathcheck.Mount) { m.Root = "/sys" }),
		"no proc":           with(func(m *pathcheck.Mount) { m.FSType = "tmpfs" }),
		"not its own point": with(func(m *pathcheck.Mount) { m.Point = "/" }),
		"too much on it":    with(same, many...),
		"nothing":           nil,
	} {
		if _, _, _, err := findProc(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// procOf is what a launch of p has come to about /proc.
func procOf(p *rules.Policy, k rules.Kernel, enter func(*rules.Policy, rules.Kernel, func() []string) *Namespace) rules.Kernel {
	got := enter(p, k, func() []string { return nil }).Kernel
	got.KernelFiles, got.ControlGroups = rules.Closure{}, rules.Closure{}
	return got
}

// entered is EnterNamespace, also where the way back to the current directory fails.
func entered(p *rules.Policy, k rules.Kernel, protected func() []string) *Namespace {
	n, _ := EnterNamespace(p, k, protected)
	return n
}

// Why there is no private /proc is said, and what is foreseen is not done.
func TestPrivateProcIsAsked(t *testing.T) {
	kernel(t, 1)
	child.Root(t)
	isolate := &rules.Policy{Isolate: rules.IsolateProc}
	keep := &rules.Policy{Isolate: rules.IsolateProc, Capabilities: rules.CapabilitiesKeep}
	for _, row := range []struct {
		name string
		p    *rules.Policy
		k    rules.Kernel
		want rules.Kernel
	}{
		{"not asked", &rules.Policy{}, rules.Kernel{ABI: 1}, rules.Kernel{ABI: 1}},
		{"no Landlock", isolate, rules.Kernel{Unavailable: "off"}, rules.Kernel{Unavailable: "off", NoPrivateProc: "Landlock is not available: off"}},
		{"foreseen", isolate, rules.Kernel{ABI: 1}, rules.Kernel{ABI: 1, PrivateProc: true}},
		{"capabilities kept", keep, rules.Kernel{ABI: 1}, rules.Kernel{ABI: 1, PrivateProc: true, ProcCapabilities: true}},
	} {
		if got := procOf(row.p, row.k, ForeseeNamespace); got != row.want {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	child.Thread(func() {
		errnotest.Must(t, restrictCapabilities())
		if got := procOf(keep, rules.Kernel{ABI: 1}, entered); got.PrivateProc || got.NoPrivateProc != "it needs CAP_SYS_ADMIN" || got.ProcCapabilities {
			t.Errorf("without the capability: %+v", got)
		}
	})
	errnotest.Answering(t, errnotest.Call{Nr: unix.SYS_CAPGET}, unix.ENOMEM, func() {
		if got := procOf(isolate, rules.Kernel{ABI: 1}, entered); got.PrivateProc || got.NoPrivateProc == "" || !got.ProcCapabilities {
			t.Errorf("capabilities not known: %+v", got)
		}
	})
	before, err := os.Readlink("/proc/thread-self/ns/mnt")
	errnotest.Must(t, err)
	procOf(isolate, rules.Kernel{ABI: 1}, ForeseeNamespace)
	if after, err := os.Readlink("/proc/thread-self/ns/mnt"); err != nil || after != before {
		t.Errorf("%s, %v, want %s", after, err, before)
	}
}

// After a failure on the way the old /proc is back.
func TestPrivateProcIsUndone(t *testing.T) {
	for _, row := range []struct {
		name string
		call uintptr
	}{{"unshare", unix.SYS_UNSHARE}, {"fsopen", unix.SYS_FSOPEN}, {"fsmount", unix.SYS_FSMOUNT}, {"move_mount", unix.SYS_MOVE_MOUNT}, {"chdir", unix.SYS_CHDIR}} {
		got := replace(t, oldProc{Dir: "/proc/sys", Options: "hidepid=off,gid=78", Fail: row.call})
		if got.Kernel.PrivateProc || got.Kernel.NoPrivateProc == "" || !strings.Contains(got.Proc, "gid=78") || strings.Contains(got.Proc, "ptraceable") {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
}
