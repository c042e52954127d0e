package hiding

import (
	"os"
	"syscall"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

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
