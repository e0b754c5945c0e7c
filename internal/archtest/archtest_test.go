package archtest

import (
	"bytes"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden lists of linked modules")

// file is one Go file of the module.
type file struct {
	path string // relative to the root, with slashes
	dir  string
	test bool
	ast  *ast.File
}

// imports returns the import paths of the file.
func (f file) imports() []string {
	var out []string
	for _, s := range f.ast.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// root returns the folder of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}

// load parses every Go file of the module.
func load(t *testing.T) (*token.FileSet, []file) {
	t.Helper()
	top := root(t)
	set := token.NewFileSet()
	var files []file
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != top && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != top {
				return fs.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		parsed, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		files = append(files, file{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(name, "_test.go"), ast: parsed})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, files
}

// below reports whether the folder dir is one of folders or inside one.
func below(dir string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return dir == f || strings.HasPrefix(dir, f+"/") })
}

// floorOf splits a folder into its top folder and the next one.
func floorOf(dir string) (floor, room string) {
	parts := strings.SplitN(dir, "/", 3)
	if len(parts) > 1 {
		room = parts[1]
	}
	return parts[0], room
}

// refuse says why a file of folder from may not import folder to, or "".
func refuse(from, to string, test bool) string {
	fromFloor, fromRoom := floorOf(from)
	toFloor, toRoom := floorOf(to)
	a, known := floors[fromFloor]
	if !known {
		return "the folder " + fromFloor + " has no floor"
	}
	b, known := floors[toFloor]
	if !known {
		return "the folder " + toFloor + " has no floor"
	}
	if fromFloor != toFloor && b >= a {
		return fromFloor + " does not look up at " + toFloor
	}
	if fromFloor != "sim" || toFloor != "sim" || fromRoom == toRoom || test {
		return ""
	}
	i, known := rooms[fromRoom]
	if !known {
		return "sim/" + fromRoom + " has no place in the order of rooms"
	}
	j, known := rooms[toRoom]
	if !known {
		return "sim/" + toRoom + " has no place in the order of rooms"
	}
	if j >= i {
		return "sim/" + fromRoom + " does not stand above sim/" + toRoom
	}
	return ""
}

func TestImportDirection(t *testing.T) {
	_, files := load(t)
	for _, f := range files {
		for _, imp := range f.imports() {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if why := refuse(f.dir, to, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imp, why)
			}
		}
	}
}

func TestRefuse(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		ok       bool
	}{
		{"cmd/inferasim", "sim/report", true},
		{"sim/kernel", "serving/bench", false},
		{"models", "sim/layout", false},
		{"models/hf", "models", true},
		{"models/hf/quant", "sim/layout", false},
		{"models", "configs", true},
		{"configs", "internal/strict", false},
		{"internal/strict", "internal/nearest", true},
		{"sim/step", "sim/kernel", true},
		{"sim/kernel", "sim/step", false},
		{"sim/kernel/calibrate", "sim/kernel", true},
		{"sim/kernel", "sim/collective", false},
		{"sim/attic", "sim/kernel", false},
		{"anchors/harvest", "serving/engine", true},
		{"pkg/x", "models", false},
	} {
		if why := refuse(tt.from, tt.to, false); (why == "") != tt.ok {
			t.Errorf("%s -> %s: %q, want ok = %v", tt.from, tt.to, why, tt.ok)
		}
	}
}

func TestFunctionalCore(t *testing.T) {
	set, files := load(t)
	for _, f := range files {
		if f.test || !below(f.dir, core) {
			continue
		}
		for _, imp := range f.imports() {
			if slices.ContainsFunc(effects, func(e string) bool { return imp == e || strings.HasSuffix(e, "/") && strings.HasPrefix(imp, e) }) {
				t.Errorf("%s: the functional core does not import %q", f.path, imp)
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if !below(f.dir, mayStart) {
					t.Errorf("%s: the functional core starts no goroutine", place(set, n))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && clock[n.Sel.Name] {
					t.Errorf("%s: the functional core does not read the clock (time.%s)", place(set, n), n.Sel.Name)
				}
			}
			return true
		})
	}
}

// TestNoInit: nothing happens at start-up; implementations are listed in
// constructor tables instead of registering themselves.
func TestNoInit(t *testing.T) {
	set, files := load(t)
	for _, f := range files {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: no init functions", place(set, fn))
			}
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	_, files := load(t)
	for _, f := range files {
		if f.test {
			continue
		}
		for _, imp := range f.imports() {
			for _, l := range libraries {
				if (imp == l.module || strings.HasPrefix(imp, l.module+"/")) && !below(f.dir, l.in) {
					t.Errorf("%s imports %s, which belongs in %v", f.path, imp, l.in)
				}
			}
		}
	}
}

func place(set *token.FileSet, n ast.Node) string {
	p := set.Position(n.Pos())
	return filepath.Base(filepath.Dir(p.Filename)) + "/" + filepath.Base(p.Filename) + ":" + strconv.Itoa(p.Line)
}

// TestLinkedModules compares the third-party modules that each binary links with
// the golden list, so that a new dependency is a visible change. After one that
// is wanted: go test ./internal/archtest -update.
func TestLinkedModules(t *testing.T) {
	top := root(t)
	for _, binary := range []string{"infera", "inferasim"} {
		if _, err := os.Stat(filepath.Join(top, "cmd", binary)); errors.Is(err, fs.ErrNotExist) {
			t.Logf("cmd/%s does not exist", binary)
			continue
		}
		got := linked(t, top, binary)
		for _, m := range got {
			for _, never := range neverLinked[binary] {
				if strings.HasPrefix(m, never) {
					t.Errorf("%s links %s", binary, m)
				}
			}
		}
		golden := filepath.Join("testdata", binary+".modules.txt")
		if *update {
			if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Fields(string(want)), got); diff != "" {
			t.Errorf("modules of %s (-golden +linked); if wanted, run go test ./internal/archtest -update:\n%s", binary, diff)
		}
	}
}

// linked lists the third-party modules in the build of cmd/binary, sorted.
func linked(t *testing.T, top, binary string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/"+binary)
	cmd.Dir = top
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list ./cmd/%s: %v\n%s", binary, err, stderr.String())
	}
	modules := slices.DeleteFunc(strings.Fields(string(out)), func(m string) bool { return m == module })
	slices.Sort(modules)
	return slices.Compact(modules)
}
