package hiding

import (
	"slices"
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
