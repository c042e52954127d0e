package rules

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// opener opens one file of the given text, and counts what is left open.
type opener struct {
	path string
	body io.Reader
	err  error
	open int
	read int
}

func (o *opener) Open(path string) (io.ReadCloser, error) {
	if path != o.path {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	if o.err != nil {
		return nil, o.err
	}
	o.open++
	return o, nil
}

func (o *opener) Read(p []byte) (int, error) {
	n, err := o.body.Read(p)
	o.read += n
	return n, err
}

func (o *opener) Close() error { o.open--; return nil }

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "/p\nq", Err: fs.ErrPermission}
}

func TestLoad(t *testing.T) {
	const text = `{"version":1,"hidden":["/a"]}`
	full := text + strings.Repeat(" ", maxText-len(text))
	for _, row := range []struct {
		name, value, file string
		want              *Policy
		source            Source
		err               string
	}{
		{name: "unset", value: ""},
		{name: "blank", value: " \t\r\n\v\f"},
		{name: "no-break space is not blank", value: "\u00a0", err: "not a JSON object"},
		{name: "inline", value: text, want: policyHiding("/a")},
		{name: "inline with space", value: "\n " + text + "\n", want: policyHiding("/a")},
		{name: "inline broken", value: `{"/secret`, err: "not valid JSON (byte 9)"},
		{name: "file", value: "@/p\nq", file: text, want: policyHiding("/a"), source: Source{"/p\nq"}},
		{name: "file of 1 MiB", value: "@/p\nq", file: full, want: policyHiding("/a"), source: Source{"/p\nq"}},
		{name: "file of 1 MiB and a byte", value: "@/p\nq", file: full + " ", source: Source{"/p\nq"}, err: `policy file "/p\nq": larger than 1 MiB`},
		{name: "file of blanks, too large", value: "@/p\nq", file: strings.Repeat(" ", 2*maxText), source: Source{"/p\nq"}, err: `policy file "/p\nq": larger than 1 MiB`},
		{name: "file empty", value: "@/p\nq", source: Source{"/p\nq"}, err: `policy file "/p\nq": is empty`},
		{name: "file blank", value: "@/p\nq", file: " \n", source: Source{"/p\nq"}, err: `policy file "/p\nq": is empty`},
		{name: "file with an error", value: "@/p\nq", file: `{"version":2}`, source: Source{"/p\nq"}, err: `policy file "/p\nq": version: must be 1`},
		{name: "file that names a file", value: "@/p\nq", file: `@/p`, source: Source{"/p\nq"}, err: `policy file "/p\nq": not a JSON object`},
		{name: "file missing", value: "@/none", source: Source{"/none"}, err: `policy file "/none": open: file does not exist`},
		{name: "line feed belongs to the name", value: "@/p\nq\n", file: text, source: Source{"/p\nq\n"}, err: `policy file "/p\nq\n": open: file does not exist`},
		{name: "file relative", value: "@p", err: `policy file: not an absolute path`},
		{name: "file without name", value: "@", err: `policy file: not an absolute path`},
		{name: "blank in front of @", value: " @/p\nq", file: text, err: "not a JSON object"},
		{name: "long name", value: "@/" + name255, source: Source{"/" + name255}, err: `policy file "/` + name255[:159] + `"…: open: file does not exist`},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := &opener{path: "/p\nq", body: strings.NewReader(row.file)}
			got, source, err := Load(row.value, Options{Open: o.Open})
			if row.err == "" && err != nil || row.err != "" && (err == nil || err.Error() != row.err) {
				t.Errorf("error %v, want %q", err, row.err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("policy (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(row.source, source); diff != "" {
				t.Errorf("source (-want +got)\n%s", diff)
			}
			if o.open != 0 {
				t.Errorf("%d files left open", o.open)
			}
			if o.read > maxText+1 {
				t.Errorf("read %d bytes", o.read)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	o := &opener{path: "/p", err: &fs.PathError{Op: "open", Path: "/p", Err: fs.ErrPermission}}
	_, _, err := Load("@/p", Options{Open: o.Open})
	if want := `policy file "/p": open: permission denied`; err == nil || err.Error() != want || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, want %q", err, want)
	}
	o = &opener{path: "/p", body: brokenReader{}}
	_, _, err = Load("@/p", Options{Open: o.Open})
	if want := `policy file "/p": read: permission denied`; err == nil || err.Error() != want || o.open != 0 {
		t.Errorf("got %v, want %q; %d open", err, want, o.open)
	}
	o = &opener{path: "/p", body: strings.NewReader(`{"version":1,"program":"x"}`)}
	_, _, err = Load("@/p", Options{Open: o.Open})
	if e, ok := errors.AsType[*Error](err); !ok || e.Key != "program" {
		t.Errorf("the error of the text is not reachable: %v", err)
	}
}

func TestLoadPolicyEnv(t *testing.T) {
	opts := Options{PolicyEnv: "P"}
	_, _, err := Load(`{"version":1,"env":{"unset":["P"]}}`, opts)
	if want := "env.unset[0]: is the variable of the policy itself"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
