package archtest

// module is the module path, the prefix of every import of our own.
const module = "infera"

// floors are the top folders from the ground up. A package may import its own
// folder and lower floors; configs and internal share the ground and do not see
// each other.
var floors = map[string]int{
	"configs":  0,
	"internal": 0,
	"models":   1,
	"sim":      2,
	"serving":  3,
	"anchors":  4,
	"cmd":      5,
}

// rooms are the packages of sim from the bottom up. A room may import rooms of
// lower tiers only.
var rooms = map[string]int{
	"hardware": 0, "workload": 0, "metrics": 0, "accuracy": 0,
	"layout": 1, "software": 1,
	"kernel": 2, "collective": 2, "moe": 2,
	"step": 3, "kvcache": 3,
	"memory": 4, "engine": 4,
	"steady": 5, "cluster": 5,
	"planner": 6,
	"report":  7, "search": 7,
}

// core are the folders of the functional core: no file system, network, process,
// clock, goroutine or init.
var core = []string{
	"models", "sim", "configs",
	"internal/nearest", "internal/rng", "internal/routing", "internal/strict", "internal/units",
	"anchors/restore", "serving/launch",
}

// effects are the packages that the core does not import; a trailing slash means
// everything below.
var effects = []string{"os", "os/", "net", "net/", "syscall", "io/ioutil", "log", "log/", "math/rand", "plugin", "runtime/debug", "unsafe"}

// clock are the functions of package time that read or wait for the clock. The
// calendar of package time is free.
var clock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true, "Local": true, "LoadLocation": true,
}

// mayStart are the core folders that may start goroutines: they run many
// independent evaluations at once.
var mayStart = []string{"sim/search"}

// libraries are the third-party modules that stay in the rooms that need them.
// Tests are free.
var libraries = []struct {
	module string
	in     []string
}{
	{"gopkg.in/yaml.v3", []string{"internal/strict"}},
	{"github.com/spf13/cobra", []string{"cmd", "internal/cli"}},
	{"github.com/spf13/viper", []string{"cmd", "internal/cli"}},
	{"github.com/spf13/pflag", []string{"cmd", "internal/cli"}},
	{"github.com/olekukonko/tablewriter", []string{"sim/report", "internal/cli"}},
	{"github.com/google/go-cmp", []string{"internal/golden"}},
	{"pgregory.net/rapid", nil},
	{"k8s.io", []string{"serving/discovery"}},
	{"go.etcd.io", []string{"serving/discovery"}},
	{"github.com/go-zeromq/zmq4", []string{"serving/kvevents"}},
	{"github.com/nats-io/nats-server", []string{"serving/transport", "cmd/infera"}},
}

// neverLinked are module prefixes that a binary must not link at all.
var neverLinked = map[string][]string{
	"inferasim": {"k8s.io/", "sigs.k8s.io/", "go.etcd.io/"},
}
