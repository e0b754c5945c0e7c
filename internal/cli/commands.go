package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// CompletionCommand prints a completion script for a shell.
func (r *Run) CompletionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	name := r.program.Name
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish|powershell}",
		Short: "Print the completion script for a shell",
		Long: "Print the completion script for a shell.\n\n" +
			"  bash:       source <(" + name + " completion bash)\n" +
			"  zsh:        " + name + " completion zsh > \"${fpath[1]}/_" + name + "\"\n" +
			"  fish:       " + name + " completion fish > ~/.config/fish/completions/" + name + ".fish\n" +
			"  powershell: " + name + " completion powershell | Out-String | Invoke-Expression",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one shell: %s", strings.Join(shells, ", "))
			}
			return Choice(new(string), shells...).Set(args[0])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, w := cmd.Root(), r.State.Stdout
			switch strings.ToLower(args[0]) {
			case "bash":
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			default:
				return root.GenPowerShellCompletionWithDesc(w)
			}
		},
	}
}

// ManCommand prints the manual page of a command, or writes all of them to a
// directory.
func (r *Run) ManCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [command...]",
		Short: "Print a manual page, or write all of them to a directory",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" && len(args) > 0 {
				return Errorf(BadInput, "--dir writes every page: leave out %q", strings.Join(args, " "))
			}
			if dir != "" {
				return r.writePages(cmd.Root(), dir)
			}
			page, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(page, rest)
			}
			return r.writePage(r.State.Stdout, page)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write one page per command to")
	return cmd
}

// writePages writes <command>-<sub-command>.1 for the whole tree.
func (r *Run) writePages(root *cobra.Command, dir string) error {
	if err := r.State.Files.MkdirAll(dir); err != nil {
		return fileError(dir, err)
	}
	var failed error
	walk(root, func(cmd *cobra.Command) {
		if failed != nil || (cmd != root && !cmd.IsAvailableCommand()) {
			return
		}
		var b bytes.Buffer
		if failed = r.writePage(&b, cmd); failed != nil {
			return
		}
		path := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		failed = r.State.Files.WriteFile(path, b.Bytes())
	})
	return failed
}

// writePage writes one page. Its date is that of the sources, so that the same
// build gives the same page.
func (r *Run) writePage(w io.Writer, cmd *cobra.Command) error {
	date := readBuild().date()
	if date.IsZero() {
		date = r.State.Now()
	}
	cmd.DisableAutoGenTag = true
	title := strings.ToUpper(strings.ReplaceAll(cmd.CommandPath(), " ", "-"))
	return doc.GenMan(cmd, &doc.GenManHeader{Title: title, Section: "1", Source: r.program.Name, Date: &date}, w)
}

// VersionCommand prints which build this is.
func (r *Run) VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and what it was built from",
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			b.Schema, b.Name = "infera.version/v1", r.program.Name
			return r.Emit(Report{
				JSON: b,
				CSV:  [][]string{{"name", "version", "commit", "time", "go", "platform"}, {b.Name, b.Version, b.Commit, b.Time, b.Go, b.Platform}},
				Text: func(w io.Writer, _ int) error {
					_, err := fmt.Fprintf(w, "%s %s\n", b.Name, b)
					return err
				},
			})
		},
	}
}

// build is what the binary knows of itself.
type build struct {
	Schema   string `json:"schema"`
	Name     string `json:"name"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Time     string `json:"time"` // of the commit
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuild() build {
	b := build{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// date is the time of the commit, zero when it is not known.
func (b build) date() time.Time {
	t, err := time.Parse(time.RFC3339, b.Time)
	if err != nil {
		return time.Time{}
	}
	return t
}

// String is "v1.2.3 (0123456789ab, modified, go1.26, linux/amd64)".
func (b build) String() string {
	parts := []string{cmp.Or(b.Commit, "no commit"), b.Go, b.Platform}
	if len(b.Commit) > 12 {
		parts[0] = b.Commit[:12]
	}
	if b.Modified {
		parts[0] += ", modified"
	}
	return b.Version + " (" + strings.Join(parts, ", ") + ")"
}
