package nextlaunch

import (
	"strings"
	"testing"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/tests/integration/launch"
)

const (
	readOnly = "Read-only file system"
	busy     = "Device or resource busy"
)

// hostile is what a first launch does to what the second rests on. denied is what it
// hears where mounts protect that; asset is of which the report of a launch without
// such mounts speaks.
var hostile = []struct {
	name, script, denied, asset string
	dirOnly                     bool
}{
	{"chmod of the shim", `chmod a-x $SHIM`, readOnly, "$SHIM", false},
	{"chmod of the shim, no permission", `chmod 000 $SHIM`, readOnly, "$SHIM", false},
	{"owner of the shim", `chown $(id -u):$(id -g) $SHIM`, readOnly, "$SHIM", false},
	{"times of the shim", `touch -d 2001-01-01 $SHIM`, readOnly, "$SHIM", false},
	{"attribute of the shim", `python3 -c 'import os;os.setxattr("$SHIM","user.x",b"1")'`, readOnly, "$SHIM", false},
	{"chmod by descriptor", `python3 -c 'import os;os.fchmod(os.open("$SHIM",os.O_RDONLY),0)'`, readOnly, "$SHIM", false},
	{"shim overwritten", `: >$SHIM`, readOnly, "$SHIM", false},
	{"shim removed", `rm $SHIM`, readOnly, "$SHIM", true},
	{"shim renamed", `mv $SHIM $SHIM.old`, readOnly, "$SHIM", true},
	{"shim replaced", `cp /bin/true $DIR/t && mv $DIR/t $SHIM`, "", "$SHIM", false},
	{"chmod of the directory", `chmod 000 $SHIMS`, readOnly, "$SHIMS", true},
	{"directory renamed", `mv $SHIMS $DIR/other`, busy, "$SHIMS", true},
	{"file beside the shim", `: >$SHIMS/ls`, readOnly, "$SHIMS", true},
	{"chmod of the program", `chmod a-x $REAL`, readOnly, "$REAL", false},
	{"program renamed", `mv $REAL $DIR/p`, busy, "$REAL", false},
	{"chmod of the policy file", `chmod 000 $POLICY`, readOnly, "$POLICY", false},
	{"policy file written", `echo '{"version":1}' >$POLICY`, readOnly, "$POLICY", false},
	{"policy file renamed", `mv $POLICY $DIR/q`, busy, "$POLICY", false},
}

// As root with CAP_SYS_ADMIN, no launch changes what the next one rests on.
func TestRootChangesNothingOfTheNextLaunch(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts, launch.Program("python3"))
	for _, inPlace := range []bool{false, true} {
		for _, h := range hostile {
			if inPlace && h.dirOnly {
				continue
			}
			t.Run(map[bool]string{false: "dir ", true: "in place "}[inPlace]+h.name, func(t *testing.T) {
				if r := newStage(t, launch.Root, inPlace).launch(h.script, nil).Run(t); r.Code != 0 {
					t.Fatalf("without a policy: %v", r)
				}
				s := newStage(t, launch.Root, inPlace)
				policy := "@" + s.policyFile
				if r := s.launch(h.script, policy).Run(t); r.Code == 0 || !strings.Contains(r.Stderr, h.denied) {
					t.Errorf("first launch: want %q: %v", h.denied, r)
				}
				for _, g := range s.last(t).NotEnforced {
					// A directory above a mounted file can still be renamed, and the report is
					// the program's.
					renames := g.Why == "the program can replace the real program" || inPlace && g.Why == "the program can replace the shim"
					if g.What == "self-protection" && g.Path != s.report && !renames {
						t.Errorf("the report says: %+v", g)
					}
				}
				if r := s.launch(`cat $SECRET; grep NoNewPrivs /proc/self/status`, policy).Run(t); r.Stdout != "NoNewPrivs:\t1\n" || !strings.Contains(r.Stderr, "Permission denied") {
					t.Errorf("second launch: %v", r)
				}
			})
		}
	}
}

// Who owns the files and may not mount can change them. That is said, by the file, and
// so is root without CAP_SYS_ADMIN.
func TestOwnerOfTheShimIsTold(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	for _, c := range []struct {
		user  launch.User
		setup *launch.Setup
	}{{launch.Nobody, nil}, {launch.Root, noAdmin}} {
		t.Run(c.user.Name, func(t *testing.T) {
			s := newStage(t, c.user, false)
			cmd := s.launch(`chmod 755 $SHIM && chmod 755 $SHIMS && chmod 755 $REAL && chmod 644 $POLICY && echo changed`, "@"+s.policyFile)
			cmd.Setup = c.setup
			if r := cmd.Run(t); r.Stdout != "changed\n" || r.Stderr != "" {
				t.Fatal(r)
			}
			const want = "the program can change the mode, owner, ACL and extended attributes of "
			for path, what := range map[string]string{s.shim(): "the shim", s.shims: "the directory of the shim", s.real: "the real program", s.policyFile: "the policy file"} {
				said := false
				for _, g := range s.last(t).NotEnforced {
					said = said || g.What == "self-protection" && g.Path == path && g.Why == want+what && g.Limit
				}
				if !said {
					t.Errorf("%s: not said: %+v", what, s.last(t).NotEnforced)
				}
			}
			above := gap(s.last(t), "self-protection", s.dir)
			if want := c.user != launch.Root; strings.Contains(above, "search permission") != want {
				t.Errorf("directory above: %q", above)
			}
		})
	}
}

// A user who owns nothing of it hears nothing, and changes nothing.
func TestShimOfAnotherOwnerStays(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot)
	s := newStage(t, launch.Root, false)
	launch.Nobody.Own(t, s.dir)
	s.user = launch.Nobody
	r := s.launch(`chmod 755 $SHIM || chmod 755 $SHIMS || chmod 755 $REAL || chmod 644 $POLICY; cat $SECRET`, "@"+s.policyFile).Run(t)
	if r.Code == 0 || strings.Count(r.Stderr, "not permitted") != 4 {
		t.Error(r)
	}
	for _, path := range []string{s.shim(), s.shims, s.real, s.policyFile} {
		for _, g := range s.last(t).NotEnforced {
			if g.What == "self-protection" && g.Path == path && strings.Contains(g.Why, "change the mode") {
				t.Errorf("%+v", g)
			}
		}
	}
	// But the directory above is the user's.
	if why := gap(s.last(t), "self-protection", s.dir); why == "" {
		t.Errorf("%+v", s.last(t).NotEnforced)
	}
}

// The mounts are the launch's own, and nothing else needs to know of them.
func TestMountsOfALaunchDisturbNothing(t *testing.T) {
	launch.Need(t, launch.Landlock, launch.IsRoot, launch.Mounts)
	s := newStage(t, launch.Root, false)
	policy := "@" + s.policyFile
	plain := s.launch(`cat $SHIM $REAL $POLICY | wc -c; ls $SHIMS; touch $DIR/new && rm $DIR/new && ls $DIR/bin`, nil).Run(t)
	r := s.launch(`cat $SHIM $REAL $POLICY | wc -c; ls $SHIMS; touch $DIR/bin/new && rm $DIR/bin/new && ls $DIR/bin`, policy).Run(t)
	if r.Code != 0 || r.Stderr != "" || r.Stdout != plain.Stdout {
		t.Errorf("want %q: %v", plain.Stdout, r)
	}
	if frozen := strings.Join(s.last(t).Frozen, " "); frozen != "/ /dev /var /var/tmp" {
		t.Errorf("frozen: %s", frozen)
	}
	// A nested launch, with a policy of its own.
	r = s.launch(`SANDBOX_EXEC_SHIM_POLICY='{"version":1,"required":true,"network":"deny","hidden":["$DIR/bin"]}' exec /usr/bin/env sh -c 'echo nested; ls $DIR/bin'`, policy).Run(t)
	if r.Code == 0 || !strings.Contains(r.Stderr, "hides the program") {
		t.Errorf("a nested policy that hides the program: %v", r)
	}
	r = s.launch(`SANDBOX_EXEC_SHIM_POLICY='{"version":1,"required":true,"network":"deny","hidden":["$DIR/policy.json"]}' exec /usr/bin/env sh -c 'echo nested; cat $DIR/policy.json'`, policy).Run(t)
	if r.Stdout != "nested\n" || !strings.Contains(r.Stderr, "Permission denied") {
		t.Errorf("nested: %v", r)
	}
	// Outside, the files are as they were, and can be changed.
	if r := s.launch(`chmod 755 $SHIM && mv $SHIMS $DIR/other && grep -c $DIR /proc/self/mounts`, nil).Run(t); r.Stdout != "0\n" {
		t.Errorf("outside: %v", r)
	}
}
