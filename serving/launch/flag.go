package launch

// noEffect is the note of an argument that cannot change speed or memory.
const noEffect = "no effect on the projection"

// kind is how a flag takes its value.
type kind uint8

const (
	one      kind = iota // --x V
	toggle               // --x, --x=true, and --no-x where the engine has it
	optional             // --x [V]
	many                 // --x V V ...
	object_              // --x JSON, and --x.key V where the engine has it
	level                // -O3, or an object
)

// flag is what is known of one flag or environment variable.
type flag struct {
	names    []string // the first is the one that messages use
	kind     kind
	field    string
	status   Status
	material bool // can change speed or memory
	secret   bool
	note     string
	set      func(p *parser, a *Argument, v string) error
	keys     map[string]string // of an object: key -> field
}

// dialect is how one engine is launched.
type dialect struct {
	engine     Engine
	flags      []flag
	env        []flag
	envPrefix  string
	positional bool // takes the model as a bare word
	negatable  bool // has --no-x for every switch
	dotted     bool // has --x.key
	finish     func(p *parser) error
}

func dialectOf(engine Engine) dialect {
	switch engine {
	case SGLang:
		return sglang()
	case ATOM:
		return atom()
	default:
		return vllm()
	}
}

// number is a flag whose whole number, at least least, is taken as it stands.
func number(field string, least int, at func(*Settings) **int, names ...string) flag {
	return flag{names: names, field: field, status: Used, set: func(p *parser, _ *Argument, v string) error {
		n, err := count(v, least)
		if err != nil {
			return err
		}
		*at(&p.s) = &n
		return nil
	}}
}

// share is a flag whose fraction is taken as it stands.
func share(field string, at func(*Settings) **float64, names ...string) flag {
	return flag{names: names, field: field, status: Used, set: func(p *parser, _ *Argument, v string) error {
		f, err := fraction(v)
		if err != nil {
			return err
		}
		*at(&p.s) = &f
		return nil
	}}
}

// on is a switch that sets a boolean to itself, off one that sets it to the
// opposite.
func on(field string, at func(*Settings) **bool, names ...string) flag {
	return flag{names: names, kind: toggle, field: field, status: Used, set: func(p *parser, _ *Argument, v string) error {
		b, err := boolean(v)
		if err != nil {
			return err
		}
		*at(&p.s) = &b
		return nil
	}}
}

func off(field string, at func(*Settings) **bool, names ...string) flag {
	f := on(field, at, names...)
	set := f.set
	f.status = Translated
	f.set = func(p *parser, a *Argument, v string) error {
		if err := set(p, a, v); err != nil {
			return err
		}
		b := !**at(&p.s)
		*at(&p.s) = &b
		return nil
	}
	return f
}

// text is a flag whose value is kept in lower case.
func text(field string, at func(*Settings) *string, names ...string) flag {
	return flag{names: names, field: field, status: Used, set: func(p *parser, _ *Argument, v string) error {
		if v == "" {
			return wrong("is empty")
		}
		*at(&p.s) = lower(v)
		return nil
	}}
}

// special is a flag with its own reading.
func special(field string, k kind, set func(p *parser, a *Argument, v string) error, names ...string) flag {
	return flag{names: names, kind: k, field: field, status: Translated, set: set}
}

// object is a flag whose value is a JSON object, read when all of the line is
// known; keys says which of its keys set which field.
func jsonFlag(keys map[string]string, names ...string) flag {
	return flag{names: names, kind: object_, status: NotModelled, material: true, keys: keys}
}

// ignored are flags, each with one name, that change neither speed nor memory.
func ignored(k kind, names ...string) []flag {
	return plain(k, false, "", names)
}

// unmodelled are flags, each with one name, that can change speed or memory and
// that no plan takes.
func unmodelled(k kind, note string, names ...string) []flag {
	return plain(k, true, note, names)
}

func plain(k kind, material bool, note string, names []string) []flag {
	out := make([]flag, len(names))
	for i, n := range names {
		out[i] = flag{names: []string{n}, kind: k, status: NotModelled, material: material, note: note}
		if n == "--api-key" || n == "--hf-token" {
			out[i].secret = true
		}
	}
	return out
}

// infera's own worker flags, which stand among the engine's after
// "infera engine vllm".
func workerFlags() []flag {
	return append(ignored(one, "--discovery-backend", "--etcd-endpoint", "--etcd-prefix", "--k8s-namespace", "--request-transport",
		"--nats-req-idle-timeout", "--nats-req-max-duration", "--nats-req-max-pending", "--drain-timeout", "--advertise-host",
		"--kv-events", "--index-block-size", "--kv-event-transport", "--nats-server", "--kv-events-bind", "--kv-events-advertise",
		"--kv-snapshot-host", "--kv-snapshot-port", "--kv-snapshot-advertise", "--infera-kvd-socket"),
		ignored(toggle, "--enable-kv-events", "--no-enable-kv-events", "--disaggregation-allow-tcp")...)
}

// commonEnv are the variables of the ROCm and CUDA runtimes and of the
// communication libraries, the same under every engine.
func commonEnv() []flag {
	visible := special(FieldVisibleGPUs, one, visibleDevices, "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
	env := []flag{
		visible,
		special(FieldQuickReduce, one, quickReduce, "AITER_QUICK_REDUCE_QUANTIZATION"),
	}
	env = append(env, unmodelled(one, "can change the speed of kernels or collectives; not modelled",
		"NCCL_*", "RCCL_*", "HSA_*", "GPU_MAX_HW_QUEUES", "HIP_FORCE_DEV_KERNARG", "TORCH_BLAS_PREFER_HIPBLASLT", "AITER_*", "AMDGCN_*", "TRITON_*",
		"FLASHINFER_*", "FLASH_ATTENTION_*", "PYTORCH_TUNABLEOP_*", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
		"MORI_*", "MC_*", "MOONCAKE_*", "LMCACHE_*", "UCX_*", "OMP_NUM_THREADS", "CUDA_DEVICE_MAX_CONNECTIONS", "DG_*", "NVSHMEM_*", "TORCHINDUCTOR_*")...)
	return append(env, ignored(one, "HF_*", "HUGGING_FACE_*", "TRANSFORMERS_*", "TOKENIZERS_PARALLELISM", "PYTHON*", "SAFETENSORS_FAST_GPU",
		"HOME", "PATH", "LD_LIBRARY_PATH", "GLOO_*", "TZ", "LANG", "LC_ALL", "CUDA_DEVICE_ORDER", "NO_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "RAY_*",
		"INFERA_*")...)
}
