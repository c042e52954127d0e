package record_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/boot"
	"github.com/sandbox-exec-shim/sandbox-exec-shim/shim/record"
)

var full = record.Record{
	Real: "/usr/bin/python3", PolicyEnv: "MY_POLICY", OnMissing: record.Refuse, Argv0: record.Real,
	Report: "/var/log/report", Log: "/var/log/log", ProfileDir: "/etc/profiles", InPlace: true,
}

// magic is what marks a block, for files made by the tests.
func magic(t testing.TB) []byte {
	t.Helper()
	m, err := hex.DecodeString("773de7b8e48df8381d875649a027f5bef97c5397eacd85da79eb07fd95acc8ba")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// binary returns a file with n blocks.
func binary(t testing.TB, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("\x7fELF and so on")
	for range n {
		block := make([]byte, boot.RecordSize)
		copy(block, magic(t))
		b.Write(block)
		b.WriteString("something between")
	}
	return b.Bytes()
}

func TestPatchThenRead(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		in   record.Record
		want record.Record
	}{
		{"full", full, full},
		{"least", record.Record{Real: "/bin/sh"}, record.Record{Real: "/bin/sh", PolicyEnv: boot.DefaultPolicyEnv}},
		{
			"odd bytes",
			record.Record{Real: "/a b/\xff\n/é", PolicyEnv: "x y\n"},
			record.Record{Real: "/a b/\xff\n/é", PolicyEnv: "x y\n"},
		},
		{
			"as long as can be",
			record.Record{Real: "/" + strings.Repeat("x", boot.RecordSize-boot.RecordOffStrings-4), PolicyEnv: "P"},
			record.Record{Real: "/" + strings.Repeat("x", boot.RecordSize-boot.RecordOffStrings-4), PolicyEnv: "P"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			original := binary(t, 1)
			kept := bytes.Clone(original)
			patched, err := record.Patch(original, test.in)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(original, kept) {
				t.Error("Patch changed its argument")
			}
			if len(patched) != len(original) {
				t.Errorf("length %d, was %d", len(patched), len(original))
			}
			got, ok, err := record.Read(patched)
			if diff := cmp.Diff(test.want, got); diff != "" || !ok || err != nil {
				t.Errorf("%v, %v, (-want +got):\n%s", ok, err, diff)
			}
			again, err := record.Patch(original, test.in)
			if err != nil || !bytes.Equal(again, patched) {
				t.Errorf("a second Patch differs: %v", err)
			}
			// Whatever was there before leaves no trace.
			other, err := record.Patch(original, full)
			if err != nil {
				t.Fatal(err)
			}
			if replaced, err := record.Patch(other, test.in); err != nil || !bytes.Equal(replaced, patched) {
				t.Errorf("a Patch of a patched file differs: %v", err)
			}
		})
	}
}

func TestPatchErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		file []byte
		r    record.Record
		want error
	}{
		{"no block", binary(t, 0), full, record.ErrNoShim},
		{"empty file", nil, full, record.ErrNoShim},
		{"two blocks", binary(t, 2), full, record.ErrManyBlocks},
		{"cut block", binary(t, 1)[:1000], full, record.ErrNoShim},
		{"too long", binary(t, 1), record.Record{Real: "/" + strings.Repeat("x", boot.RecordSize-boot.RecordOffStrings-3), PolicyEnv: "P"}, record.ErrTooLong},
	} {
		if _, err := record.Patch(test.file, test.r); !errors.Is(err, test.want) {
			t.Errorf("%s: Patch: %v, want %v", test.name, err, test.want)
		}
		if errors.Is(test.want, record.ErrTooLong) {
			continue
		}
		if _, _, err := record.Read(test.file); !errors.Is(err, test.want) {
			t.Errorf("%s: Read: %v, want %v", test.name, err, test.want)
		}
	}
	if _, err := record.Patch(binary(t, 1), record.Record{}); err == nil {
		t.Error("a record without a path was written")
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	change := func(f func(*record.Record)) record.Record { r := full; f(&r); return r }
	for _, test := range []struct {
		name string
		r    record.Record
		want string // in the error; "" for none
	}{
		{"full", full, ""},
		{"least", record.Record{Real: "/x"}, ""},
		{"no path", change(func(r *record.Record) { r.Real = "" }), "real path"},
		{"root", change(func(r *record.Record) { r.Real = "/" }), "real path"},
		{"relative path", change(func(r *record.Record) { r.Real = "bin/sh" }), "not absolute"},
		{"path not clean", change(func(r *record.Record) { r.Real = "/bin/../sh" }), "not clean"},
		{"path with NUL", change(func(r *record.Record) { r.Real = "/bin/a\x00b" }), "NUL"},
		{"relative report", change(func(r *record.Record) { r.Report = "x" }), "report"},
		{"relative log", change(func(r *record.Record) { r.Log = "x" }), "log"},
		{"relative profiles", change(func(r *record.Record) { r.ProfileDir = "x" }), "profile directory"},
		{"name with =", change(func(r *record.Record) { r.PolicyEnv = "A=" }), "policy variable"},
		{"name with NUL", change(func(r *record.Record) { r.PolicyEnv = "A\x00" }), "policy variable"},
		{"unknown on missing", change(func(r *record.Record) { r.OnMissing = 2 }), "on missing"},
		{"unknown argv0", change(func(r *record.Record) { r.Argv0 = 2 }), "argv0"},
	} {
		err := test.r.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	empty := binary(t, 1)[len("\x7fELF and so on"):]
	if _, ok, err := record.Decode(empty); ok || err != nil {
		t.Errorf("a block without a record: %v, %v", ok, err)
	}
	if _, ok, err := record.Decode(empty[:100]); ok || !errors.Is(err, record.ErrBroken) {
		t.Errorf("a cut block: %v, %v", ok, err)
	}
	patched, err := record.Patch(binary(t, 1), full)
	if err != nil {
		t.Fatal(err)
	}
	block := patched[len("\x7fELF and so on"):][:boot.RecordSize]
	length := boot.RecordOffPayload + int(block[boot.RecordOffLength]) + int(block[boot.RecordOffLength+1])<<8
	for off := boot.RecordOffVersion; off < length; off++ {
		for bit := range 8 {
			damaged := bytes.Clone(block)
			damaged[off] ^= 1 << bit
			if r, ok, err := record.Decode(damaged); ok || !errors.Is(err, record.ErrBroken) {
				t.Fatalf("bit %d of byte %d changed: %+v, %v, %v", bit, off, r, ok, err)
			}
		}
	}
}

func TestIsShim(t *testing.T) {
	t.Parallel()
	marker := "\x11\xa9\x00\xb8\x27\xef\xd2\xcb\xcf\x7e\x61\x5a\x3d\xa8\xee\xf6"
	elf := func(at int) []byte {
		b := make([]byte, 8192)
		copy(b, "\x7fELF")
		copy(b[at:], marker)
		return b
	}
	for _, test := range []struct {
		name   string
		header []byte
		want   bool
	}{
		{"nothing", nil, false},
		{"an ELF file", []byte("\x7fELF"), false},
		{"with the marker", elf(3972), true},
		{"at the end of the page", elf(boot.HeaderSize - 16), true},
		{"cut to the marker", elf(64)[:80], true},
		{"cut in the marker", elf(64)[:79], false},
		{"across the end of the page", elf(boot.HeaderSize - 12), false},
		{"behind the page", elf(boot.HeaderSize), false},
		{"not aligned", elf(102), false},
		{"no ELF file", []byte("#!/b" + marker), false},
	} {
		if got := record.IsShim(test.header); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
		got, err := record.FileIsShim(bytes.NewReader(test.header))
		if got != test.want || err != nil {
			t.Errorf("%s: FileIsShim: %v, %v", test.name, got, err)
		}
	}
	if _, err := record.FileIsShim(badFile{}); !errors.Is(err, errBad) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

var errBad = errors.New("bad file")

type badFile struct{}

func (badFile) ReadAt([]byte, int64) (int, error) { return 0, errBad }

// Nothing that Decode accepts may be invalid for who uses it, and what Patch
// writes Decode must give back.
func FuzzDecode(f *testing.F) {
	patched, err := record.Patch(binary(f, 1), full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(patched[len("\x7fELF and so on"):][:boot.RecordSize])
	f.Add(make([]byte, boot.RecordSize))
	f.Fuzz(func(t *testing.T, block []byte) {
		r, ok, err := record.Decode(block)
		if ok && err != nil {
			t.Fatalf("both a record and %v", err)
		}
		if !ok {
			return
		}
		if r.PolicyEnv == "" || r.OnMissing > record.Refuse || r.Argv0 > record.Real {
			t.Errorf("%+v", r)
		}
		for _, s := range []string{r.Real, r.PolicyEnv, r.Report, r.Log, r.ProfileDir} {
			if strings.Contains(s, "\x00") {
				t.Errorf("NUL in %q", s)
			}
		}
	})
}

func FuzzPatch(f *testing.F) {
	f.Add("/usr/bin/python3", "P", "/r", "/l", "/p", uint8(1), uint8(1), true)
	f.Add("/", "=", "", "", "", uint8(2), uint8(0), false)
	f.Fuzz(func(t *testing.T, path, env, report, log, profiles string, missing, argv0 uint8, inPlace bool) {
		in := record.Record{
			Real: path, PolicyEnv: env, Report: report, Log: log, ProfileDir: profiles,
			OnMissing: record.OnMissing(missing), Argv0: record.Argv0(argv0), InPlace: inPlace,
		}
		patched, err := record.Patch(binary(t, 1), in)
		if err != nil {
			if in.Validate() == nil && !errors.Is(err, record.ErrTooLong) {
				t.Errorf("%+v is valid, but: %v", in, err)
			}
			return
		}
		got, ok, err := record.Read(patched)
		if in.PolicyEnv == "" {
			in.PolicyEnv = boot.DefaultPolicyEnv
		}
		if got != in || !ok || err != nil {
			t.Errorf("got %+v, %v, %v, want %+v", got, ok, err, in)
		}
	})
}

// edited is the block of a full record after a change, with the checksum that belongs
// to it.
func edited(t *testing.T, change func(block *[boot.RecordSize]byte)) []byte {
	t.Helper()
	patched, err := record.Patch(binary(t, 1), full)
	if err != nil {
		t.Fatal(err)
	}
	block := [boot.RecordSize]byte(patched[len("\x7fELF and so on"):])
	change(&block)
	length := uintptr(block[boot.RecordOffLength]) + uintptr(block[boot.RecordOffLength+1])<<8
	sum := boot.RecordSum(&block, length)
	for i := range 4 {
		block[boot.RecordOffSum+i] = byte(sum >> (8 * i))
	}
	return block[:]
}

// What is whole and not understood is not used: a later version, an unknown choice, a
// field that ends where the record ends and so has no NUL of its own.
func TestDecodeRefusesWhatIsWhole(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(block *[boot.RecordSize]byte)
		want   error
	}{
		{"as it was", func(*[boot.RecordSize]byte) {}, nil},
		{"a later version", func(b *[boot.RecordSize]byte) { b[boot.RecordOffVersion]++ }, record.ErrBroken},
		{"no version", func(b *[boot.RecordSize]byte) { b[boot.RecordOffVersion] = 0 }, record.ErrBroken},
		{"another choice on missing", func(b *[boot.RecordSize]byte) { b[boot.RecordOffMissing] = 2 }, record.ErrBroken},
		{"another choice of argv[0]", func(b *[boot.RecordSize]byte) { b[boot.RecordOffArgv0] = 2 }, record.ErrBroken},
		{"another choice of the place", func(b *[boot.RecordSize]byte) { b[boot.RecordOffInPlace] = 2 }, record.ErrBroken},
		{"a byte less", func(b *[boot.RecordSize]byte) { b[boot.RecordOffLength]-- }, record.ErrBroken},
	} {
		if _, ok, err := record.Decode(edited(t, row.change)); !errors.Is(err, row.want) || ok != (row.want == nil) {
			t.Errorf("%s: %v, %v", row.name, ok, err)
		}
	}
}
