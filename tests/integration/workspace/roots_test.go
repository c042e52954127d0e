package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

// What is hidden beneath a root is hidden there too, and a root that is hidden is
// none. The directories between stay as they are but for new entries.
func TestHiddenBeatsTheRoots(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.fill(t, p.ws)
		in := func(dir, name string) string { return filepath.Join(dir, name) }
		free := p.policy(m{"writable": []string{p.outside}})
		p.want(t, free, map[try]string{
			{Op: "append", Path: in(p.ws, "dir/in")}: ok, {Op: "append", Path: in(p.outside, "file")}: ok, {Op: "create", Path: in(p.ws, "new")}: ok,
		})
		hidden := p.policy(m{"writable": []string{p.outside}, "hidden": []string{in(p.ws, "dir"), p.outside}, "frozen": "allow"})
		p.want(t, hidden, map[try]string{
			{Op: "append", Path: in(p.ws, "dir/in")}:    "EACCES",
			{Op: "read", Path: in(p.ws, "dir/in")}:      "EACCES",
			{Op: "create", Path: in(p.ws, "dir/new")}:   "EACCES",
			{Op: "append", Path: in(p.outside, "file")}: "EACCES",
			{Op: "read", Path: in(p.outside, "file")}:   "EACCES",
			{Op: "create", Path: in(p.ws, "new2")}:      "EACCES", // the workspace is frozen
			{Op: "append", Path: in(p.ws, "file")}:      ok,
			{Op: "create", Path: in(p.ws, "empty/new")}: ok,
		})
		r := p.report(t)
		if slices.Contains(r.WritableDirs, p.outside) || !strings.Contains(r.Warning, "is not writable") {
			t.Errorf("listed %q, warning %q", r.WritableDirs, r.Warning)
		}
	})
}

// A root that something hidden beneath it would freeze is an error, which
// "frozen" can lift; a toolchain directory may be frozen.
func TestFrozenRootsAreRefused(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		mkdirAll(t, u, p.home, ".cache/sub")
		cache := filepath.Join(p.home, ".cache")
		for _, row := range []struct {
			name   string
			change m
			says   string
		}{
			{"workspace", m{"hidden": []string{filepath.Join(p.ws, "later")}}, "would freeze the workspace"},
			{"writable", m{"writable": []string{p.outside}, "hidden": []string{filepath.Join(p.outside, "dir/in")}}, "would freeze the writable root"},
		} {
			t.Run(row.name, func(t *testing.T) {
				r := p.shell(t, p.policy(row.change), "echo started")
				if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, row.says) || !strings.Contains(r.Stderr, `"frozen":"allow"`) {
					t.Errorf("%v, want 125 and %q", r, row.says)
				}
				row.change["frozen"] = "allow"
				p.run(t, p.policy(row.change), ":")
			})
		}
		pol := p.policy(m{"hidden": []string{filepath.Join(cache, "tokens")}})
		p.want(t, pol, map[try]string{
			{Op: "create", Path: filepath.Join(cache, "new")}:     "EACCES",
			{Op: "create", Path: filepath.Join(cache, "sub/new")}: ok,
		})
		if r := p.report(t); !slices.Contains(r.Frozen, cache) {
			t.Errorf("frozen %q lacks %s", r.Frozen, cache)
		}
	})
}

// A writable directory is so with what is mounted in it, a file by itself, a
// device with its ioctls.
func TestEachKindOfRootIsWritable(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		file, other := filepath.Join(p.outside, "file"), filepath.Join(p.outside, "other")
		rows := func(write, ioctl string) map[try]string {
			return map[try]string{
				{Op: "append", Path: file}:            write,
				{Op: "rename", Path: other, To: file}: "EACCES",
				{Op: "unlink", Path: file}:            "EACCES",
				{Op: "append", Path: other}:           "EACCES",
				{Op: "ioctl", Path: "/dev/urandom"}:   ioctl,
				{Op: "write", Path: "/dev/urandom"}:   write,
				{Op: "ioctl", Path: "/dev/ptmx"}:      ok,
				{Op: "read", Path: "/dev/urandom"}:    ok,
			}
		}
		launch.Need(t, launch.ABIAtLeast(5))
		p.want(t, p.policy(nil), rows("EACCES", "EACCES"))
		p.want(t, p.policy(m{"writable": []string{file, "/dev/urandom"}}), rows(ok, "EINVAL"))
		if got := p.try(t, nil, try{Op: "ioctl", Path: "/dev/urandom"}, try{Op: "write", Path: "/dev/urandom"}); got[0] != "EINVAL" || got[1] != ok {
			t.Errorf("without a policy: %q", got)
		}
	})
}

// A disk and the memory of the kernel are no roots, at whatever path.
func TestDisksAndMemoryAreNoRoots(t *testing.T) {
	launch.Need(t, launch.IsRoot)
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		disk, memory, null := filepath.Join(p.outside, "disk"), filepath.Join(p.outside, "memory"), filepath.Join(p.outside, "null")
		for path, node := range map[string]struct{ kind, major, minor uint32 }{
			disk: {unix.S_IFBLK, 7, 0}, memory: {unix.S_IFCHR, 1, 1}, null: {unix.S_IFCHR, 1, 3},
		} {
			if err := unix.Mknod(path, node.kind|0o666, int(unix.Mkdev(node.major, node.minor))); err != nil {
				t.Fatal(err)
			}
		}
		refused := map[string]string{disk: "is a block device", memory: "reaches memory or a disk"}
		if nodes, err := os.ReadDir("/dev"); err != nil || slices.ContainsFunc(nodes, isDisk) {
			refused["/dev"] = "reaches memory or a disk"
		}
		for path, says := range refused {
			r := p.shell(t, p.policy(m{"writable": []string{path}}), "echo started")
			if r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, says) {
				t.Errorf("%s: %v, want 125 and %q", path, r, says)
			}
		}
		p.run(t, p.policy(m{"writable": []string{null}}), ":")
	})
}

func isDisk(e os.DirEntry) bool { return e.Type()&(os.ModeDevice|os.ModeCharDevice) == os.ModeDevice }

// What is mounted beneath the workspace can be written, by that path only.
func TestMountInTheWorkspaceIsWritable(t *testing.T) {
	launch.Need(t, launch.IsRoot, launch.Mounts)
	p := newPlace(t, launch.Root)
	p.u.Mkdir(t, filepath.Join(p.ws, "m"), 0o755)
	c := launch.Cmd{
		Path: "/bin/sh", Args: []string{
			"sh", "-c", `mount --make-rprivate / && mount --bind "$1/dir" "$2/m" || exit 9
export SANDBOX_EXEC_SHIM_POLICY="$0"; cd "$2" && exec "$3" -c 'echo x >m/new && echo made; echo x >"$1/dir/new2" || echo denied' sh "$1"`,
			`{"version":1,"scope":"workspace","toolchainDirs":false}`, p.outside, p.ws, p.sh,
		},
		Env: p.env(), Sys: &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
	}
	if r := c.Run(t); r.Stdout != "made\ndenied\n" || r.Code != 0 {
		t.Error(r)
	}
	if _, err := os.Stat(filepath.Join(p.outside, "dir/new")); err != nil {
		t.Error(err)
	}
}

// /proc and /sys are read-only; a user may name /proc, root may not.
func TestProcIsWritableOnlyWhereAUserNamesIt(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		comm := try{Op: "write", Path: "/proc/self/comm"}
		if got := p.try(t, nil, comm); got[0] != ok {
			t.Fatalf("without a policy: %q", got)
		}
		p.want(t, p.policy(nil), map[try]string{
			comm: "EACCES", {Op: "read", Path: "/proc/self/comm"}: ok, {Op: "list", Path: "/sys/kernel"}: ok,
			{Op: "write", Path: "/sys/kernel/mm/transparent_hugepage/enabled"}: "EACCES",
		})
		named := p.policy(m{"writable": []string{"/proc"}})
		if u.UID != 0 {
			p.want(t, named, map[try]string{comm: ok, {Op: "create", Path: filepath.Join(p.outside, "new")}: "EACCES"})
			return
		}
		if r := p.shell(t, named, "echo started"); r.Code != 125 || r.Stdout != "" || !strings.Contains(r.Stderr, "acts on the kernel") {
			t.Errorf("root: %v, want 125", r)
		}
	})
}

// With a directory of the harness's own, the caches are named to the program, and
// what the policy sets itself stays.
func TestOwnedCachesAreNamedToTheProgram(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		p.set["GOCACHE"], p.set["MAVEN_ARGS"] = filepath.Join(p.home, "build"), "-q"
		own := filepath.Join(p.dir, "own")
		change := m{"toolchainDirs": m{"owned": own}, "env": m{"set": m{"PIP_CACHE_DIR": "/elsewhere"}}}
		const show = `echo "$TMPDIR|$GOCACHE|$PIP_CACHE_DIR|$MAVEN_ARGS"; mkdir -p "$GOCACHE" && mktemp >/dev/null && echo made`
		want := own + "/tmp|" + own + "/go-build|/elsewhere|-q -Dmaven.repo.local=" + own + "/maven\nmade\n"
		if r := p.run(t, p.policy(change), show); r.Stdout != want {
			t.Errorf("%v, want %q", r, want)
		}
		if left := tree(t, p.home); len(left) != 0 {
			t.Errorf("made in HOME: %q", left)
		}
		p.want(t, p.policy(change), map[try]string{
			{Op: "create", Path: filepath.Join(own, "x")}: ok, {Op: "create", Path: filepath.Join(p.tmp, "x")}: "EACCES",
		})
	})
}

// "leaves" makes the directories that builds write, with mode 0700, and nothing
// that stands on PATH or holds settings.
func TestLeavesAreMadeAndNothingElse(t *testing.T) {
	launch.EachUser(t, func(t *testing.T, u launch.User) {
		p := newPlace(t, u)
		change := m{"toolchainDirs": "leaves"}
		dirs := slices.DeleteFunc(p.listed(t, change), func(dir string) bool { return dir == p.ws || dir == p.tmp })
		if len(dirs) < 20 {
			t.Errorf("listed: %q", dirs)
		}
		rows := map[try]string{}
		for _, dir := range dirs {
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != 0o700 || !strings.HasPrefix(dir, p.home+"/") {
				t.Errorf("%s: %v, %v", dir, info, err)
			}
			rows[try{Op: "create", Path: filepath.Join(dir, "new")}] = ok
		}
		for _, name := range []string{".cache/x", ".cargo/config.toml", ".cargo/bin/x", "go/bin/x", ".npmrc", ".m2/settings.xml", "x"} {
			path := filepath.Join(p.home, name)
			mkdirAll(t, u, p.home, filepath.Dir(name))
			rows[try{Op: "create", Path: path}] = "EACCES"
		}
		p.want(t, p.policy(change), rows)
	})
}
