package rules

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestPick(t *testing.T) {
	for _, row := range []struct {
		name  string
		envp  []string
		value string
		found bool
		rest  []string
		err   string
	}{
		{"nil", nil, "", false, nil, ""},
		{"absent", []string{"A=1", "B=2"}, "", false, []string{"A=1", "B=2"}, ""},
		{"present", []string{"A=1", "P=x=y", "B=2"}, "x=y", true, []string{"A=1", "B=2"}, ""},
		{"first", []string{"P=", "A=1"}, "", true, []string{"A=1"}, ""},
		{"only", []string{"P=v"}, "v", true, []string{}, ""},
		{"twice equal", []string{"P=v", "A=1", "P=v"}, "v", true, []string{"A=1"}, ""},
		{"twice different", []string{"P=v", "A=1", "P=w"}, "", true, []string{"A=1"}, "P: occurs twice with different values"},
		{"second empty", []string{"P=v", "P="}, "", true, []string{}, "P: occurs twice with different values"},
		{"first empty", []string{"P=", "P=v"}, "", true, []string{}, "P: occurs twice with different values"},
		{"third different", []string{"P=v", "P=v", "P=w"}, "", true, []string{}, "P: occurs twice with different values"},
		{"like it", []string{"P", "PP=1", "p=1", "=P=1", "XP=1", " P=1"}, "", false, []string{"P", "PP=1", "p=1", "=P=1", "XP=1", " P=1"}, ""},
		{"odd others", []string{"", "=", "A", "A=1", "P=v", "A=1", "\xff=\xfe"}, "v", true, []string{"", "=", "A", "A=1", "A=1", "\xff=\xfe"}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := slices.Clone(row.envp)
			value, found, rest, err := Pick(row.envp, "P")
			if value != row.value || found != row.found {
				t.Errorf("got %q, %v; want %q, %v", value, found, row.value, row.found)
			}
			if diff := cmp.Diff(row.rest, rest); diff != "" {
				t.Errorf("rest (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, row.envp); diff != "" {
				t.Errorf("envp was changed (-before +after)\n%s", diff)
			}
			if row.err == "" && err != nil || row.err != "" && (err == nil || err.Error() != row.err) {
				t.Errorf("error %v, want %q", err, row.err)
			}
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Errorf("error is a %T", err)
			}
		})
	}
}

func TestApply(t *testing.T) {
	set := func(pairs ...string) (list []EnvVar) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, EnvVar{pairs[i], pairs[i+1]})
		}
		return list
	}
	for _, row := range []struct {
		name   string
		env    []string
		change EnvChange
		want   []string
	}{
		{"nothing", []string{"A=1", "A=2", "B"}, EnvChange{}, []string{"A=1", "A=2", "B"}},
		{"unset absent", []string{"A=1"}, EnvChange{Unset: []string{"B"}}, []string{"A=1"}},
		{"unset all", []string{"A=1", "B=1", "A=2"}, EnvChange{Unset: []string{"A"}}, []string{"B=1"}},
		{"unset leaves what has no value", []string{"A", "A=", "AA=1"}, EnvChange{Unset: []string{"A"}}, []string{"A", "AA=1"}},
		{"set absent", []string{"A=1"}, EnvChange{Set: set("B", "x", "C", "")}, []string{"A=1", "B=x", "C="}},
		{"set in place", []string{"A=1", "B=2", "C=3"}, EnvChange{Set: set("B", "x=y")}, []string{"A=1", "B=x=y", "C=3"}},
		{"set drops later ones", []string{"B=1", "A=1", "B=2", "B=3"}, EnvChange{Set: set("B", "x")}, []string{"B=x", "A=1"}},
		{"both", []string{"A=1", "B=1"}, EnvChange{Unset: []string{"A"}, Set: set("B", "2", "C", "3")}, []string{"B=2", "C=3"}},
		{"odd ones stay", []string{"", "=", "=A=1", "B", "\xff=1"}, EnvChange{Unset: []string{"A"}, Set: set("B", "2")}, []string{"", "=", "=A=1", "B", "\xff=1", "B=2"}},
		{"empty environment", nil, EnvChange{Set: set("A", "1")}, []string{"A=1"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := slices.Clone(row.env)
			got := Apply(row.env, row.change)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(before, row.env); diff != "" {
				t.Errorf("env was changed (-before +after)\n%s", diff)
			}
		})
	}
}

func FuzzPick(f *testing.F) {
	f.Add("A=1\x00P=x\x00B=2", "P")
	f.Add("P=x\x00P=y\x00P", "P")
	f.Add("P=x\x00\x00P=x\x00PP=x", "P")
	f.Add("", "P")
	f.Fuzz(func(t *testing.T, block, name string) {
		envp := strings.Split(block, "\x00")
		value, found, rest, err := Pick(envp, name)

		// The model: filter, and the set of values.
		var want []string
		values := map[string]bool{}
		for _, s := range envp {
			if len(s) > len(name) && s[:len(name)] == name && s[len(name)] == '=' {
				values[s[len(name)+1:]] = true
				continue
			}
			want = append(want, s)
		}
		if found != (len(values) > 0) || (err != nil) != (len(values) > 1) {
			t.Errorf("found %v, error %v with values %v", found, err, values)
		}
		if err == nil && found && !values[value] || (err != nil || !found) && value != "" {
			t.Errorf("value %q, want one of %v", value, values)
		}
		if !slices.Equal(rest, want) {
			t.Errorf("rest %q, want %q", rest, want)
		}
		// The strings are the same, not copies: they stay where execve
		// found them.
		for i := range min(len(rest), len(want)) {
			if unsafe.StringData(rest[i]) != unsafe.StringData(want[i]) {
				t.Errorf("string %d was copied", i)
			}
		}
		if v, again, _, err := Pick(rest, name); v != "" || again || err != nil {
			t.Errorf("a second Pick found %q, %v, %v", v, again, err)
		}
	})
}
