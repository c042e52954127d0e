package hiding

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

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
