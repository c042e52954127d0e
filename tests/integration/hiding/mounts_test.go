package hiding

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// A hidden place that another mount shows again is hidden there too, when the
// mount was there before the launch.
func TestMountsOfTheHiddenAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	for _, c := range []struct {
		name    string
		hidden  string // "$W/secret" if empty
		prepare func(t *testing.T, w *world)
		denied  []string // files with a content
		open    []string
		frozen  []string
	}{
		{
			name:    "the place itself, in a free directory",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W/secret", "$W/work/m") },
			denied:  []string{"$W/secret/f", "$W/work/m/f", "$W/work/m/own/f"},
			open:    []string{"$W/work/f", "$W/file"},
			frozen:  []string{"$W", "$W/work"},
		},
		{
			name:    "the place itself, beside it",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W/secret", "$W/m") },
			denied:  []string{"$W/secret/f", "$W/m/f"},
			open:    []string{"$W/work/f"},
		},
		{
			name:    "a name with a space, a newline and a backslash",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W/secret", "$W/work/a b\n\\040") },
			denied:  []string{"$W/secret/f", "$W/work/a b\n\\040/f"},
			open:    []string{"$W/work/f"},
		},
		{
			name:    "its parent",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W", "$W/work/m") },
			denied:  []string{"$W/secret/f", "$W/work/m/secret/f"},
			open:    []string{"$W/work/f", "$W/work/m/work/f", "$W/work/m/file"},
			frozen:  []string{"$W/work/m"},
		},
		{
			name:    "a directory inside it",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W/secret/own", "$W/work/m") },
			denied:  []string{"$W/secret/own/f", "$W/work/m/f"},
			open:    []string{"$W/work/f"},
		},
		{
			name:    "a file inside it",
			prepare: func(t *testing.T, w *world) { w.bind(t, "$W/secret/f", "$W/file") },
			denied:  []string{"$W/secret/f", "$W/file"},
			open:    []string{"$W/work/f"},
		},
		{
			name:    "the root directory",
			prepare: func(t *testing.T, w *world) { w.bindReadOnly(t, "/", "$W/work/m") },
			denied:  []string{"$W/secret/f", "$W/work/m$W/secret/f"},
			open:    []string{"$W/work/f", "$W/work/m$W/work/f", "$W/work/m/etc/passwd"},
		},
		{
			name: "the mount point of what is mounted there",
			prepare: func(t *testing.T, w *world) {
				w.bind(t, "$W/work", "$W/secret") // secret now shows work
			},
			denied: []string{"$W/secret/f", "$W/work/f"},
			open:   []string{"$W/file"},
		},
		{
			name: "a mount inside it",
			prepare: func(t *testing.T, w *world) {
				w.mount(t, "tmpfs", "$W/secret/sub", "tmpfs", 0, "")
				w.write(t, "$W/secret/sub/g", secret)
				w.bind(t, "$W/secret/sub", "$W/work/m")
			},
			denied: []string{"$W/secret/sub/g", "$W/work/m/g"},
			open:   []string{"$W/work/f"},
		},
		{
			name: "a part of a mount inside it",
			prepare: func(t *testing.T, w *world) {
				w.mount(t, "tmpfs", "$W/secret/sub", "tmpfs", 0, "mode=755")
				w.mkdir(t, "$W/secret/sub/deep")
				w.write(t, "$W/secret/sub/deep/g", secret)
				w.bind(t, "$W/secret/sub/deep", "$W/work/m")
			},
			denied: []string{"$W/secret/sub/deep/g", "$W/work/m/g"},
			open:   []string{"$W/work/f"},
		},
		{
			name: "a mount of a mount",
			prepare: func(t *testing.T, w *world) {
				w.bind(t, "$W/secret", "$W/work/m")
				w.mkdir(t, "$W/again")
				w.mount(t, "$W/work", "$W/again", "", unix.MS_BIND|unix.MS_REC, "")
			},
			denied: []string{"$W/secret/f", "$W/work/m/f", "$W/again/m/f"},
			open:   []string{"$W/work/f", "$W/again/f"},
		},
		{
			name: "covered by another mount",
			prepare: func(t *testing.T, w *world) {
				w.bind(t, "$W/secret", "$W/work/sub")
				w.mount(t, "tmpfs", "$W/work/sub", "tmpfs", 0, "")
				w.write(t, "$W/work/sub/f", "free")
			},
			denied: []string{"$W/secret/f"},
			open:   []string{"$W/work/f", "$W/work/sub/f"},
		},
		{
			name:   "a file of its own",
			hidden: "$W/work/f",
			prepare: func(t *testing.T, w *world) {
				w.bind(t, "$W/work", "$W/secret/sub")
				w.bind(t, "$W/work/f", "$W/file")
			},
			denied: []string{"$W/work/f", "$W/secret/sub/f", "$W/file"},
			open:   []string{"$W/work/p", "$W/secret/sub/p", "$W/secret/f"},
		},
		{
			name: "lower layer of an overlay",
			prepare: func(t *testing.T, w *world) {
				w.mount(t, "overlay", "$W/work/m", "overlay", 0, "lowerdir=$W/secret:$W/work")
			},
			denied: []string{"$W/secret/f", "$W/work/m/f", "$W/work/m/own/f"},
			open:   []string{"$W/work/f"},
		},
		{
			name: "inside the lower layer of an overlay",
			prepare: func(t *testing.T, w *world) {
				w.mkdir(t, "$W/upper")
				w.mkdir(t, "$W/ovl")
				w.mount(t, "overlay", "$W/work/m", "overlay", 0, "lowerdir=$W,upperdir=$W/work/sub,workdir=$W/upper")
			},
			denied: []string{"$W/secret/f", "$W/work/m/secret/f"},
			open:   []string{"$W/work/f", "$W/work/m/file"},
		},
		{
			name:   "lower layer with signs in its name",
			hidden: "$W/work/a:b c",
			prepare: func(t *testing.T, w *world) {
				w.mkdir(t, "$W/work/a:b c")
				w.write(t, "$W/work/a:b c/g", secret)
				w.mount(t, "overlay", "$W/secret/sub", "overlay", 0, `lowerdir=$W/work/a\:b c:$W/secret/own`)
			},
			denied: []string{"$W/work/a:b c/g", "$W/secret/sub/g"},
			open:   []string{"$W/secret/f", "$W/work/f"},
		},
		{
			name: "upper layer of an overlay",
			prepare: func(t *testing.T, w *world) {
				w.mkdir(t, "$W/upper")
				w.mount(t, "overlay", "$W/work/m", "overlay", 0, "lowerdir=$W/work/sub,upperdir=$W/secret,workdir=$W/upper")
			},
			denied: []string{"$W/secret/f", "$W/work/m/f"},
			open:   []string{"$W/work/f"},
		},
		{
			name: "a part of an overlay at another path",
			prepare: func(t *testing.T, w *world) {
				w.overlay(t, "$W", "$W/work/m")
				w.mkdir(t, "$W/part")
				w.bind(t, "$W/work/m/secret", "$W/part")
				w.bind(t, "$W/work/m/work", "$W/work/sub")
			},
			denied: []string{"$W/secret/f", "$W/work/m/secret/f", "$W/part/f"},
			open:   []string{"$W/work/f", "$W/work/m/work/f", "$W/work/sub/f"},
		},
		{
			name: "an overlay on an overlay",
			prepare: func(t *testing.T, w *world) {
				w.overlay(t, "$W", "$W/work/m")
				w.mkdir(t, "$W/second")
				w.overlay(t, "$W/work/m", "$W/second")
				w.mkdir(t, "$W/third")
				w.bind(t, "$W/second/secret", "$W/third")
			},
			denied: []string{"$W/secret/f", "$W/work/m/secret/f", "$W/second/secret/f", "$W/third/f", "$W/third/own/f"},
			open:   []string{"$W/work/f", "$W/work/m/work/f", "$W/second/work/f"},
		},
		{
			name: "an overlay on what a bind mount shows, hidden by that",
			prepare: func(t *testing.T, w *world) {
				w.mkdir(t, "$W/shown")
				w.bind(t, "$W/secret", "$W/shown")
				w.overlay(t, "$W", "$W/work/m")
			},
			hidden: "$W/shown",
			denied: []string{"$W/shown/f", "$W/secret/f", "$W/work/m/secret/f"},
			open:   []string{"$W/work/f", "$W/work/m/work/f"},
		},
		{
			name: "a layer named by a bind mount",
			prepare: func(t *testing.T, w *world) {
				w.mkdir(t, "$W/shown")
				w.bind(t, "$W", "$W/shown")
				w.overlay(t, "$W/shown", "$W/work/m")
			},
			denied: []string{"$W/secret/f", "$W/shown/secret/f", "$W/work/m/secret/f"},
			open:   []string{"$W/work/f", "$W/shown/work/f", "$W/work/m/work/f"},
		},
		{
			name: "an overlay on a mount inside it",
			prepare: func(t *testing.T, w *world) {
				w.mount(t, "tmpfs", "$W/secret/sub", "tmpfs", 0, "mode=755")
				w.write(t, "$W/secret/sub/g", secret)
				w.overlay(t, "$W/secret/sub", "$W/work/m")
			},
			denied: []string{"$W/secret/sub/g", "$W/work/m/g"},
			open:   []string{"$W/work/f"},
		},
		{
			name: "an overlay that has itself in a layer",
			prepare: func(t *testing.T, w *world) {
				w.overlay(t, "$W", "$W/work/m")
			},
			denied: []string{"$W/secret/f", "$W/work/m/secret/f"},
			open:   []string{"$W/work/f", "$W/work/m/work/f"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			launch.EachUser(t, func(t *testing.T, u launch.User) {
				privateMounts(t)
				var rows []row
				for _, path := range c.denied {
					rows = append(rows, row{op: "read", path: path, free: ok, held: denied})
				}
				for _, path := range c.open {
					rows = append(rows, row{op: "read", path: path, free: ok, held: ok})
				}
				hidden := c.hidden
				if hidden == "" {
					hidden = "$W/secret"
				}
				var w *world
				r := table(t, u, `{"version":1,"hidden":["`+hidden+`"]}`, func(t *testing.T, made *world) {
					w = made
					c.prepare(t, made)
				}, rows)
				for _, dir := range c.frozen {
					if !slices.Contains(r.Frozen, w.at(dir)) {
						t.Errorf("frozen %q lacks %q", r.Frozen, w.at(dir))
					}
				}
			})
		})
	}
}

// Two mounts of one device are one file system.
func TestSecondMountOfTheDeviceIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("losetup"), launch.Program("mkfs.ext4"))
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		table(t, u, `{"version":1,"hidden":["$W/disk/secret"]}`, func(t *testing.T, w *world) {
			d := newDisk(t, w)
			w.mount(t, d.node, "$W/work/again", "ext4", 0, "")
		}, []row{
			{op: "read", path: "$W/disk/secret/f", free: ok, held: denied},
			{op: "read", path: "$W/work/again/secret/f", free: ok, held: denied},
			{op: "list", path: "$W/work/again/secret", free: ok, held: denied},
			{op: "read", path: "$W/disk/open/f", free: ok, held: ok},
			{op: "read", path: "$W/work/again/open/f", free: ok, held: ok},
		})
	})
}

// What a mount shows of a place that does not exist yet.
func TestMountOfWhatAppearsLaterIsDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.bind(t, "$W/secret", "$W/work/m")
		p := w.command(t, w.policy(t, `{"version":1,"hidden":["$W/secret/later/deep"]}`), []try{
			{"create", "$W/work/sub/ready", ""},
			{"await", "$W/work/sub/go", ""},
			{"read", "$W/secret/later/deep/f", ""},
			{"read", "$W/work/m/later/deep/f", ""},
			{"read", "$W/work/m/f", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/work/sub/ready"))
		w.mkdir(t, "$W/secret/later")
		w.mkdir(t, "$W/secret/later/deep")
		w.write(t, "$W/secret/later/deep/f", secret)
		w.write(t, "$W/work/sub/go", "")
		got := errnos(w.results(t, p.Wait(t), 5))
		if d := cmp.Diff([]string{ok, ok, denied, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// An exposure under which a mount shows a hidden place cannot be had.
func TestExposedThatHoldsAMountOfTheHiddenIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.write(t, "$W/secret/sub/g", secret)
		w.mkdir(t, "$W/secret/own/m")
		got, _ := w.held(t, hideExceptOwn, try{"list", "$W/secret/own/m", ""}, try{"read", "$W/secret/sub/g", ""})
		if d := cmp.Diff([]string{ok, denied}, errnos(got)); d != "" {
			t.Errorf("before the mount: -want +got:\n%s", d)
		}
		w.bind(t, "$W/secret/sub", "$W/secret/own/m")
		w.refused(t, hideExceptOwn, "exposed[0]", "$W/secret/own", "reveal")
	})
}

// An exposure that is itself a mount of another hidden place.
func TestExposedMountOfTheHiddenIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.bind(t, "$W/work", "$W/secret/own")
		w.refused(t, `{"version":1,"hidden":["$W/secret","$W/work"],"exposed":["$W/secret/own"]}`, "exposed[0]", "hidden")
		// With nothing of it hidden the mount is what the exposure opens.
		got, _ := w.held(t, hideExceptOwn, try{"read", "$W/secret/own/p", ""}, try{"read", "$W/secret/f", ""})
		if d := cmp.Diff([]string{ok, denied}, errnos(got)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A mount that freezes the temp directory is like any other reason for it.
func TestTempDirectoryFrozenByAMountIsRefused(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.env = with("TMPDIR=" + w.at("$W/work"))
		got, _ := w.held(t, hideSecret, try{"mktemp", "", ""})
		if got[0].Errno != ok {
			t.Errorf("mktemp before the mount: %+v", got)
		}
		w.bind(t, "$W/secret", "$W/work/m")
		w.refused(t, hideSecret, "temp directory", "$W/work")
		got, _ = w.held(t, `{"version":1,"frozen":"allow","hidden":["$W/secret"]}`, try{"mktemp", "", ""}, try{"read", "$W/work/m/f", ""})
		if d := cmp.Diff([]string{denied, denied}, errnos(got)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A mount made by an outsider after the launch is a limit, and listed.
func TestMountAfterTheLaunchIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.mkdir(t, "$W/work/m")
		p := w.command(t, w.policy(t, hideSecret), []try{
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/secret/f", ""},
			{"read", "$W/work/m/f", ""},
		}).Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		w.bind(t, "$W/secret", "$W/work/m")
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 4))
		if d := cmp.Diff([]string{ok, ok, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantLimit(t, w.report(t), "later")
	})
}

// In a chroot whose root is no mount, the table of mounts does not say where
// the root directory is. That is reported.
func TestUnknownMountsOfAChrootAreReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		for _, dir := range []string{"$W/root", "$W/root/proc", "$W/root/dev", "$W/root/tmp", "$W/root/secret", "$W/root/free", "$W/root/free/m", "$W/root/report", "$W/root/bin"} {
			w.mkdir(t, dir)
		}
		w.write(t, "$W/root/secret/f", secret)
		w.write(t, "$W/root/free/f", secret)
		w.mount(t, "proc", "$W/root/proc", "proc", 0, "")
		w.bind(t, "$W/root/secret", "$W/root/free/m")
		data, err := os.ReadFile(witness(t))
		if err != nil {
			t.Fatal(err)
		}
		launch.WriteProgram(t, w.at("$W/root/bin/witness"), data)
		launch.Install(t, w.at("$W/root"), "shim", launch.Record{Real: "/bin/witness"})
		tries := `[{"Op":"read","Path":"/secret/f"},{"Op":"read","Path":"/free/f"},{"Op":"read","Path":"/free/m/f"}]`
		c := w.command(t, `{"version":1,"hidden":["/secret"],"report":"/report/r"}`, nil)
		c.Path, c.Args = "/shim", []string{"witness", tries}
		c.Sys = &syscall.SysProcAttr{Chroot: w.at("$W/root")}
		r := c.Run(t)
		got := w.results(t, r, 3)
		reports := launch.Reports(t, w.at("$W/root/report/r"))
		if len(reports) != 1 {
			t.Fatalf("%d reports: %v", len(reports), r)
		}
		switch {
		case got[0].Errno != denied || got[1].Errno != ok:
			t.Errorf("%+v", got)
		case got[2].Errno == ok:
			wantLimit(t, reports[0], "mount-alias")
		}
	})
}

// Without /proc there is no table of mounts. What the policy names is hidden
// and the rest is said.
func TestUnknownMountsWithoutProcAreReported(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		w := newWorld(t, u)
		w.mount(t, "tmpfs", "/proc", "tmpfs", 0, "")
		w.bind(t, "$W/secret", "$W/work/m")
		out, r := w.held(t, hideSecret, try{"read", "$W/secret/f", ""}, try{"read", "$W/work/f", ""}, try{"read", "$W/work/m/f", ""})
		got := errnos(out)
		if got[0] != denied || got[1] != ok {
			t.Errorf("%+v", out)
		}
		if got[2] == ok {
			wantLimit(t, r, "mount-alias")
		}
	})
}

// What is hidden in an overlay stands in one of its layers too.
func TestLayerOfTheHiddenIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		r := table(t, u, `{"version":1,"hidden":["$W/merged/f"]}`, func(t *testing.T, w *world) {
			w.mkdir(t, "$W/empty")
			w.mount(t, "overlay", "$W/merged", "overlay", 0, "lowerdir=$W/work:$W/empty")
		}, []row{
			{op: "read", path: "$W/merged/f", free: ok, held: denied},
			{op: "read", path: "$W/merged/p", free: ok, held: ok},
			{op: "read", path: "$W/work/f", free: ok, held: ok},
		})
		wantLimit(t, r, "overlay")
	})
}

// The kernel keeps the path of a layer as it was given, and a relative one leads
// nowhere later.
func TestLayerByARelativePathIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		privateMounts(t)
		r := table(t, u, hideSecret, func(t *testing.T, w *world) {
			// The thread has a current directory of its own, as it has mounts.
			if err := unix.Chdir(w.dir); err != nil {
				t.Fatal(err)
			}
			w.mount(t, "overlay", "$W/merged", "overlay", 0, "lowerdir=secret:work")
		}, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "read", path: "$W/merged/f", free: ok, held: ok},
		})
		wantLimit(t, r, "overlay")
	})
}

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

func TestMovedContentIsALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		p := w.command(t, w.policy(t, hideSecret), []try{
			{"create", "$W/work/ready", ""},
			{"await", "$W/work/go", ""},
			{"read", "$W/work/moved", ""},       // moved out into what is granted
			{"read", "$W/renamed/own/f", ""},    // the hidden directory renamed where it stands
			{"read", "$W/work/moved-dir/g", ""}, // a directory moved out
		}).Start(t)
		awaitFile(t, w.at("$W/work/ready"))
		w.write(t, "$W/secret/sub/g", secret)
		rename(t, w.at("$W/secret/f"), w.at("$W/work/moved"))
		rename(t, w.at("$W/secret/sub"), w.at("$W/work/moved-dir"))
		rename(t, w.at("$W/secret"), w.at("$W/renamed"))
		w.write(t, "$W/work/go", "")
		got := errnos(w.results(t, p.Wait(t), 5))
		if d := cmp.Diff([]string{ok, ok, ok, denied, ok}, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantLimit(t, w.report(t), "later")
	})
}

func TestHardLinksAreALimit(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		link := func(t *testing.T, w *world) {
			for _, to := range []string{"$W/work/hard", "$W/hard"} {
				if err := os.Link(w.at("$W/secret/f"), w.at(to)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// A hidden file: the name beside it is left out, the one in a granted
		// directory leads to it, and the report says so.
		r := table(t, u, `{"version":1,"hidden":["$W/secret/f"]}`, link, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: denied},
			{op: "read", path: "$W/hard", free: ok, held: denied},
			{op: "read", path: "$W/work/hard", free: ok, held: ok},
			{op: "read", path: "$W/work/f", free: ok, held: ok},
		})
		wantLimit(t, r, "hard-link")
		if text := strings.Join(limits(r, "hard-link"), "; "); !strings.Contains(text, "3 names") {
			t.Errorf("hard-link: %q does not count the names", text)
		}
		// A file in a hidden directory.
		r = table(t, u, hideSecret, func(t *testing.T, w *world) {
			link(t, w)
			w.write(t, "$W/secret/g", secret)
			if err := os.Link(w.at("$W/secret/g"), w.at("$W/work/g")); err != nil {
				t.Fatal(err)
			}
		}, []row{
			{op: "read", path: "$W/secret/f", free: ok, held: ok}, // the rule on $W/hard is on the inode
			{op: "read", path: "$W/secret/g", free: ok, held: denied},
			{op: "read", path: "$W/work/g", free: ok, held: ok},
			{op: "read", path: "$W/work/hard", free: ok, held: ok},
			{op: "list", path: "$W/secret", free: ok, held: denied},
		})
		wantLimit(t, r, "hard-link")
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
