package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"infera/internal/cli"
)

func runWith(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), &cli.State{
		Args: args, Env: env, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err,
		Width: cli.PipeWidth, Now: func() time.Time { return time.Unix(0, 0) },
	})
	return code, out.String(), err.String()
}

func TestHelp(t *testing.T) {
	code, out, _ := runWith(t, nil)
	if code != 0 || !strings.Contains(out, "Available Commands:") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// Every documented variable is listed, and its default passes its own check.
func TestVariables(t *testing.T) {
	code, out, stderr := runWith(t, map[string]string{"NATS_URL": "nats://b:4222", "MC_GID_INDEX": "3"}, "env", "-o", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var got struct {
		Variables []struct{ Name, Value, Origin, Flag string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, v := range got.Variables {
		values[v.Name] = v.Value
	}
	for _, name := range strings.Fields(`
		INFERA_KVD_SOCKET INFERA_KVD_HIPFILE_ROOTS INFERA_KVD_AIS INFERA_KVD_GPU_DIRECT INFERA_KVD_CHUNK_TOKENS
		INFERA_KVD_CHUNK_TARGET_MIB INFERA_KVD_LAYERWISE_LOAD INFERA_KVD_L3_BUDGET_BYTES INFERA_KVD_L3_FREE_FLOOR
		INFERA_KVD_L3_REAP_INTERVAL INFERA_KVD_SAVE_WORKERS INFERA_KVD_LOAD_WORKERS INFERA_KVD_RETENTION_DEFAULT
		HIPFILE_UNSUPPORTED_FILE_SYSTEMS MC_GID_INDEX NCCL_IB_GID_INDEX MC_DISABLE_HIP_TRANSPORT MORI_IB_GID_INDEX
		VLLM_HOST_IP RDMAV_FORK_SAFE NATS_SERVER NATS_URL INFERA_NATS_REQ_IDLE_TIMEOUT INFERA_NATS_REQ_MAX_DURATION
		INFERA_NATS_REQ_MAX_PENDING INFERA_REQUEST_MAX_RETRIES INFERA_K8S_LABEL_SELECTOR INFERA_DRAIN_TIMEOUT
		PYTHONHASHSEED VLLM_SERVER_DEV_MODE HIP_VISIBLE_DEVICES`) {
		if _, ok := values[name]; !ok {
			t.Errorf("%s is not listed", name)
		}
	}
	if values["NATS_URL"] != "nats://b:4222" || values["MC_GID_INDEX"] != "3" {
		t.Errorf("values: %v", values)
	}
	for _, v := range variables() {
		if v.Help == "" || v.Group == "" {
			t.Errorf("%s has no help or group", v.Name)
		}
		if v.Check != nil && v.Default != "" {
			if err := v.Check(v.Default); err != nil {
				t.Errorf("default of %s: %v", v.Name, err)
			}
		}
	}
}

func TestUnknownVariable(t *testing.T) {
	code, _, stderr := runWith(t, map[string]string{"INFERA_KVD_SOKET": "/x"}, "version")
	want := "infera: unknown environment variable INFERA_KVD_SOKET; did you mean \"INFERA_KVD_SOCKET\"?\n"
	if code != cli.ExitBadInput || stderr != want {
		t.Errorf("exit %d, %q", code, stderr)
	}
	// The simulator's variables are none of this program's business.
	if code, _, stderr := runWith(t, map[string]string{"INFERASIM_MODEL": "x"}, "version"); code != 0 {
		t.Error(stderr)
	}
}
