package hiding

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Hidden in /sys, of which a chroot has a bind mount.
func TestHiddenKernelFilesAreDeniedInBindMounts(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		rootOnly := map[bool]string{true: ok, false: denied}[u.UID == 0]
		table(t, u, `{"version":1,"hidden":["/sys/kernel/mm/ksm"]}`, func(t *testing.T, w *world) {
			w.bind(t, "/sys", "$W/work/sys")
		}, []row{
			{op: "list", path: "/sys/kernel/mm/transparent_hugepage", free: ok, held: ok},
			{op: "list", path: "/sys/kernel/mm/ksm", free: ok, held: denied},
			{op: "list", path: "$W/work/sys/kernel/mm/ksm", free: ok, held: denied},
			{op: "write", path: "/sys/kernel/mm/transparent_hugepage/enabled", free: rootOnly, held: denied},
			{op: "write", path: "$W/work/sys/kernel/mm/transparent_hugepage/enabled", free: rootOnly, held: denied},
		})
	})
}

// A rootless container: root of a user namespace, which has made its own
// mounts.
func TestRootOfAUserNamespaceIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.UserNS, launch.Program("unshare"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.mkdir(t, "$W/work/m")
		c := w.command(t, w.policy(t, hideSecret), []try{
			{"read", "$W/secret/f", ""},
			{"read", "$W/work/m/f", ""},
			{"read", "$W/work/f", ""},
			{"bind", "$W/work/sub", "$W/secret"},
			{"umount", "$W/work/m", ""},
			{"capabilities", "", ""},
		})
		c.Args = append([]string{
			"unshare", "--user", "--map-root-user", "--mount", "--propagation", "private",
			"sh", "-c", `mount --bind "$1" "$2" && shift 2 && exec "$0" "$@"`, c.Path, w.at("$W/secret"), w.at("$W/work/m"),
		}, c.Args[1:]...)
		c.Path = launch.Look(t, "unshare")
		out := w.results(t, c.Run(t), 6)
		if d := cmp.Diff([]string{denied, denied, ok, "EPERM", "EPERM", ok}, errnos(out)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A chroot has bind mounts of /proc, /sys and /dev. For root they are closed
// to writing, and /proc, /sys and /dev themselves are as usable as before.
func TestBindMountsOfKernelFilesAreReadOnly(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		write := denied
		if u.UID != 0 {
			write = ok
		}
		rootOnly := map[bool]string{true: ok, false: denied}[u.UID == 0]
		table(t, u, hideSecret, func(t *testing.T, w *world) {
			w.bind(t, "/proc", "$W/work/proc")
			w.bind(t, "/sys", "$W/work/sys")
			w.bind(t, "/dev", "$W/work/dev")
		}, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "read", path: "/proc/version", free: ok, held: ok},
			{op: "read", path: "/proc/self/status", free: ok, held: ok},
			{op: "list", path: "/sys/kernel", free: ok, held: ok},
			{op: "write", path: "/dev/null", free: ok, held: ok},
			{op: "write", path: "/proc/self/comm", free: ok, held: write},
			{op: "write", path: "$W/work/proc/self/comm", free: ok, held: write},
			{op: "write", path: "$W/work/proc/sys/kernel/core_pattern", free: rootOnly, held: denied},
			{op: "write", path: "$W/work/sys/kernel/mm/transparent_hugepage/enabled", free: rootOnly, held: denied},
			{op: "read", path: "$W/work/f", free: ok, held: ok},
			{op: "create", path: "$W/work/sub/new", free: ok, held: ok},
		})
	})
}

// An exposure does not open for writing what acts on the kernel.
func TestExposedKernelFilesStayReadOnly(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	for name, c := range map[string]struct {
		exposed, to string
		refused     bool
	}{
		"a part of sysfs":       {"$W/secret/sub/kernel", "sysfs", false},
		"sysfs":                 {"$W/secret/sub", "sysfs", true},
		"a directory with proc": {"$W/secret", "proc", true},
	} {
		t.Run(name, func(t *testing.T) {
			privateMounts(t)
			w := newWorld(t, launch.Root)
			w.mount(t, c.to, "$W/secret/sub", c.to, 0, "")
			policy := `{"version":1,"hidden":["$W/secret"],"exposed":["` + c.exposed + `"]}`
			if name == "a directory with proc" {
				policy = `{"version":1,"hidden":["$W"],"exposed":["$W/secret"]}`
			}
			if c.refused {
				w.refused(t, policy, "exposed[0]")
				return
			}
			file := try{"write", c.exposed + "/mm/transparent_hugepage/enabled", ""}
			if free := w.free(t, file); free[0].Errno != ok {
				t.Fatalf("control: %+v", free)
			}
			out, _ := w.held(t, policy, file, try{"list", c.exposed, ""})
			if d := cmp.Diff([]string{denied, ok}, errnos(out)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
