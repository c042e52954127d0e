package hiding

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/report"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// Of /dev only what reaches no disk and no memory is open. The nodes here have
// no driver behind them, so what may be opened answers ENXIO.
func TestDevicesOfDisksAndMemoryAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	const none = "ENXIO"
	nodes := []struct {
		path         string
		mode         uint32
		major, minor uint32
		free, held   string
	}{
		{"null", unix.S_IFCHR, 1, 3, ok, ok},
		{"zero", unix.S_IFCHR, 1, 5, ok, ok},
		{"urandom", unix.S_IFCHR, 1, 9, ok, ok},
		{"mem", unix.S_IFCHR, 1, 1, none, denied},
		{"kmem", unix.S_IFCHR, 1, 2, none, denied},
		{"port", unix.S_IFCHR, 1, 4, none, denied},
		{"odd-name", unix.S_IFCHR, 1, 1, none, denied},
		{"sg0", unix.S_IFCHR, 21, 0, none, denied},
		{"nvme0", unix.S_IFCHR, 500, 0, none, denied},
		{"ng0n1", unix.S_IFCHR, 501, 0, none, denied},
		{"bsg/0:0:0:0", unix.S_IFCHR, 502, 0, none, denied},
		{"plain", unix.S_IFCHR, 503, 0, none, none},
		{"free/deep/plain", unix.S_IFCHR, 503, 1, none, none},
		{"sdz", unix.S_IFBLK, 504, 0, none, denied},
		{"disks/sdz", unix.S_IFBLK, 504, 1, none, denied},
		{"disks/control", unix.S_IFCHR, 503, 2, none, none},
		{"disks/deep/deeper/sdz", unix.S_IFBLK, 504, 2, none, denied},
		{"disks/deep/deeper/plain", unix.S_IFCHR, 503, 3, none, none},
		{"raw/mem", unix.S_IFCHR, 1, 1, none, denied},
	}
	var rows []row
	for _, n := range nodes {
		rows = append(rows, row{op: "read", path: "/dev/" + n.path, free: n.free, held: n.held})
	}
	rows = append(
		rows,
		row{op: "list", path: "/dev", free: ok, held: denied},
		row{op: "list", path: "/dev/free", free: ok, held: ok},
		row{op: "list", path: "/dev/disks", free: ok, held: denied},
		row{op: "create", path: "/dev/new", free: ok, held: denied},
		row{op: "block-node", path: "/dev/free/node", to: "504:0", free: ok, held: denied},
		row{op: "char-node", path: "/dev/free/mem", to: "1:1", free: ok, held: denied},
		row{op: "rename", path: "/dev/sdz", to: "/dev/free/sdz", free: ok, held: denied},
		row{op: "link", path: "/dev/disks/sdz", to: "/dev/free/sdz2", free: ok, held: denied},
	)
	tries, want := make([]try, len(rows)), [2][]string{}
	for i, r := range rows {
		tries[i] = try{r.op, r.path, r.to}
		want[0], want[1] = append(want[0], r.op+" "+r.path+" "+r.free), append(want[1], r.op+" "+r.path+" "+r.held)
	}
	for _, mode := range []string{"free", "restricted", "keep"} {
		t.Run(mode, func(t *testing.T) {
			privateMounts(t)
			w := newWorld(t, launch.Root)
			w.mount(t, "tmpfs", "/dev", "tmpfs", 0, "mode=755")
			for _, dir := range []string{"bsg", "free", "free/deep", "disks", "disks/deep", "disks/deep/deeper", "raw"} {
				if err := os.Mkdir("/dev/"+dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, n := range nodes {
				if err := unix.Mknod("/dev/"+n.path, n.mode|0o666, int(unix.Mkdev(n.major, n.minor))); err != nil {
					t.Fatal(err)
				}
			}
			var out []result
			frozen, as := []string(nil), want[0]
			if mode == "free" {
				out = w.free(t, tries...)
			} else {
				var r report.Report
				out, r = w.held(t, `{"version":1,"capabilities":"`+mode+`","hidden":["$W/secret"]}`, tries...)
				frozen, as = r.Frozen, want[1]
			}
			var got []string
			for i, r := range rows {
				got = append(got, r.op+" "+r.path+" "+out[i].Errno)
			}
			if d := cmp.Diff(as, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if mode == "free" {
				return
			}
			for _, dir := range []string{"/dev", "/dev/disks", "/dev/disks/deep", "/dev/disks/deep/deeper"} {
				if !slices.Contains(frozen, dir) {
					t.Errorf("frozen %q lacks %q", frozen, dir)
				}
			}
			if slices.Contains(frozen, "/dev/free") {
				t.Errorf("frozen %q: /dev/free is not", frozen)
			}
		})
	}
}

// Devices and kernel files can be hidden like others.
func TestHiddenDevicesAndKernelFilesAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		shm, err := os.MkdirTemp("/dev/shm", "shim-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(shm) })
		if err := os.Chmod(shm, 0o755); err != nil {
			t.Fatal(err)
		}
		u.Own(t, shm)
		u.Write(t, shm+"/f", secret, 0o644)
		u.Mkdir(t, shm+"/sub", 0o755)
		write := denied // root is kept from writing, the user may not anyway
		table(t, u, `{"version":1,"hidden":["/dev/urandom","/sys/kernel/mm","`+shm+`/f"]}`, nil, []row{
			{op: "read", path: "/dev/urandom", free: ok, held: denied},
			{op: "read", path: "/dev/zero", free: ok, held: ok},
			{op: "list", path: "/sys/kernel/mm", free: ok, held: denied},
			{op: "list", path: "/sys/kernel", free: ok, held: denied},
			{op: "list", path: "/sys/class", free: ok, held: ok},
			{op: "write", path: "/sys/kernel/mm/transparent_hugepage/enabled", free: map[bool]string{true: ok, false: denied}[u.UID == 0], held: write},
			{op: "read", path: shm + "/f", free: ok, held: denied},
			{op: "create", path: shm + "/sub/new", free: ok, held: ok},
			{op: "unlink", path: shm + "/sub/new", free: ok, held: ok},
			{op: "write", path: "/dev/null", free: ok, held: ok},
			{op: "read", path: "/proc/self/status", free: ok, held: ok},
		})
	})
}

func TestHiddenFIFOsAndSocketsAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		for _, path := range []string{"$W/work/fifo", "$W/work/openfifo"} {
			if err := unix.Mkfifo(w.at(path), 0o600); err != nil {
				t.Fatal(err)
			}
			u.Own(t, w.at(path))
		}
		tries := []try{
			{"read", "$W/work/fifo", ""}, {"write", "$W/work/socket", ""}, {"read", "$W/work/f", ""}, {"unlink", "$W/work/fifo", ""},
		}
		w.free(t, try{"listen", "$W/work/socket", ""})
		out, r := w.held(t, `{"version":1,"hidden":["$W/work/fifo","$W/work/socket"]}`, tries...)
		if d := cmp.Diff([]string{denied, denied, ok, denied}, errnos(out)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		wantLimit(t, r, "unix-socket")
		if free := errnos(w.free(t, tries...)); !cmp.Equal(free, []string{ok, "ENXIO", ok, ok}) {
			t.Errorf("without a policy: %q", free)
		}
	})
}

// More hidden paths than the shim holds descriptors.
func TestManyHiddenPathsAreDenied(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		policy, tries := `{"version":1,"hidden":["$W/secret"`, []try{}
		var want []string
		for i := range 100 {
			path := "$W/work/sub/" + decimal(uint32(i))
			w.write(t, path, secret)
			tries, want = append(tries, try{"read", path, ""}), append(want, map[bool]string{true: ok, false: denied}[i%5 == 0])
			if i%5 != 0 {
				policy += `,"` + path + `"`
			}
		}
		w.setup = &launch.Setup{NoFile: &[2]uint64{128, 128}}
		out, _ := w.held(t, policy+"]}", tries...)
		if d := cmp.Diff(want, errnos(out)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

// A directory on the way that may not be searched can hide a symlink from the
// shim, not from the program, which may change the mode of what it owns.
func TestUnsearchableAncestorIsReported(t *testing.T) {
	launch.Need(t, launch.Landlock)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		w := newWorld(t, u)
		w.mkdir(t, "$W/way")
		w.symlink(t, "../secret", "$W/way/link")
		if err := os.Chmod(w.at("$W/way"), 0); err != nil {
			t.Fatal(err)
		}
		out, r := w.held(t, `{"version":1,"hidden":["$W/way/link"]}`, try{"chmod", "$W/way", ""}, try{"read", "$W/way/link/f", ""}, try{"read", "$W/work/f", ""})
		got := errnos(out)
		if got[0] != ok || got[2] != ok {
			t.Errorf("%+v", out)
		}
		if u.UID == 0 && got[1] != denied {
			t.Errorf("root could look: %+v", out)
		}
		if got[1] == ok {
			wantLimit(t, r, "unresolved")
		}
	})
}
