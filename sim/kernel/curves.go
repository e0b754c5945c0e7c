package kernel

// Residual is what a calibration left unexplained: relative errors of the fitted
// and of the held-out rows.
type Residual struct {
	// Rows is the number of measurements of the fit, HeldOut of those kept aside.
	Rows    int `yaml:"rows"`
	HeldOut int `yaml:"held_out"`
	// Median and P90 are absolute relative errors of the fitted rows.
	Median float64 `yaml:"median"`
	P90    float64 `yaml:"p90"`
	// HeldOutMedian is the median absolute relative error of the rows kept
	// aside (whole shapes, by a hash).
	HeldOutMedian float64 `yaml:"held_out_median"`
	// Spread is the log-standard deviation for bands, from the central 80 % of
	// all rows.
	Spread float64 `yaml:"spread"`
}

// MatrixCurve is the efficiency of one family of matrix products on one part.
type MatrixCurve struct {
	// RampMicroseconds is the fixed start and tail of a kernel.
	RampMicroseconds float64 `yaml:"ramp_us"`
	// Memory is the achievable share of the HBM bandwidth.
	Memory float64 `yaml:"memory"`
	// Compute is the achievable share of the matrix peak in 256 x 256 tiles.
	Compute float64 `yaml:"compute"`
	// Operand is the weight of a tile's operand traffic: a tile of a x b
	// reaches a share of the peak proportional to 1/(1 + Operand (a+b)/(2ab)).
	Operand float64 `yaml:"operand"`
	// Prologue is the start and epilogue of a tile in units of K.
	Prologue float64 `yaml:"prologue"`
	// Split is the most workgroups that share the K of one tile.
	Split float64 `yaml:"split"`
	// SerialNanoseconds is the least time per unit of K in one workgroup.
	SerialNanoseconds float64 `yaml:"serial_ns"`
	// ReducePicoseconds is what one more partial sum costs per output element.
	ReducePicoseconds float64 `yaml:"reduce_ps"`
	// Wave is the felt share of the last, partly filled wave (a stream-K kernel
	// hides it).
	Wave float64 `yaml:"wave"`
	// Overlap is the share of the smaller of memory and arithmetic that shows.
	Overlap float64 `yaml:"overlap"`
	// Scatter is the share of the per-row output of expert products that goes
	// to HBM before it is summed per token.
	Scatter float64 `yaml:"scatter"`
	// Imbalance is the extra arithmetic per unit by which the busiest expert
	// exceeds the mean.
	Imbalance float64 `yaml:"imbalance"`

	Source   string   `yaml:"source"`
	Residual Residual `yaml:"residual"`
}

// PrefillCurve is the efficiency of flash attention over a chunk.
type PrefillCurve struct {
	RampMicroseconds float64 `yaml:"ramp_us"`
	// Memory is the achievable share of the HBM bandwidth, Compute of the bf16
	// matrix peak.
	Memory  float64 `yaml:"memory"`
	Compute float64 `yaml:"compute"`
	// Softmax is the cost of one score (exponential, maximum, sum) in matrix
	// operations.
	Softmax float64 `yaml:"softmax"`
	// Tail is the share of the longest query tile that the whole part waits for.
	Tail float64 `yaml:"tail"`
	// Prologue is the start and end of one query tile in cached tokens.
	Prologue float64 `yaml:"prologue"`
	// Overlap is the share of the smaller of memory and arithmetic that shows.
	Overlap float64 `yaml:"overlap"`
	// Narrow multiplies the arithmetic when the cache is 8 bits wide or less,
	// NarrowRampMicroseconds adds to the ramp then.
	Narrow                 float64 `yaml:"narrow"`
	NarrowRampMicroseconds float64 `yaml:"narrow_ramp_us"`
	// Cached is the bandwidth at which query tiles re-read K and V, as a multiple
	// of that of the HBM.
	Cached float64 `yaml:"cached"`
	// Gather is the share of that when every query fetches entries of its own.
	Gather float64 `yaml:"gather"`

	Source   string   `yaml:"source"`
	Residual Residual `yaml:"residual"`
}

// DecodeCurve is the efficiency of split-KV decode attention.
type DecodeCurve struct {
	RampMicroseconds float64 `yaml:"ramp_us"`
	// Memory is the achievable share of the HBM bandwidth.
	Memory float64 `yaml:"memory"`
	// CastPicoseconds is the time of a compute unit to widen one element of a
	// cache of 8 bits or less, NarrowRampMicroseconds adds to the ramp then.
	CastPicoseconds        float64 `yaml:"cast_ps"`
	NarrowRampMicroseconds float64 `yaml:"narrow_ramp_us"`
	// Compute is the achievable share of the bf16 matrix peak in tiles of Rows
	// packed query rows.
	Compute float64 `yaml:"compute"`
	Rows    float64 `yaml:"rows"`
	// ItemNanoseconds is the fixed time a compute unit spends per sequence and
	// KV head.
	ItemNanoseconds float64 `yaml:"item_ns"`
	// SerialNanoseconds is the time of one workgroup per cached token at the
	// most splits (Split) of one sequence.
	SerialNanoseconds float64 `yaml:"serial_ns"`
	Split             float64 `yaml:"split"`
	// Overlap is the share of the smaller of memory and arithmetic that shows.
	Overlap float64 `yaml:"overlap"`

	Source   string   `yaml:"source"`
	Residual Residual `yaml:"residual"`
}

// PassCurve is the efficiency of streaming passes and recurrent scans.
type PassCurve struct {
	RampMicroseconds float64 `yaml:"ramp_us"`
	// Memory is the achievable share of the HBM bandwidth, Compute of the bf16
	// matrix peak.
	Memory  float64 `yaml:"memory"`
	Compute float64 `yaml:"compute"`
	// Chunk is the number of tokens a chunked scan takes at once; 0 = step by
	// step.
	Chunk float64 `yaml:"chunk"`

	Source   string   `yaml:"source"`
	Residual Residual `yaml:"residual"`
}

// Curves are the calibrated efficiencies of one part, all families of it.
type Curves struct {
	Name         string `yaml:"name"`
	Vendor       string `yaml:"vendor"`
	ISA          string `yaml:"isa"`
	Arch         string `yaml:"arch"`
	ComputeUnits int    `yaml:"compute_units"`
	// Power is the board power of the measured part in watts; it tells parts of
	// one instruction set apart, whose sustained clocks follow it. 0 = any.
	Power float64 `yaml:"power_w"`
	// StandsInFor lists the architectures without own curves that take these.
	StandsInFor []string `yaml:"stands_in_for"`
	// StandInSpread is the log-standard deviation added for such a part.
	StandInSpread float64 `yaml:"stand_in_spread"`
	Source        string  `yaml:"source"`

	Matrix  map[string]MatrixCurve  `yaml:"matrix"`
	Prefill map[string]PrefillCurve `yaml:"prefill"`
	Decode  map[string]DecodeCurve  `yaml:"decode"`
	Pass    map[string]PassCurve    `yaml:"pass"`

	// StandIn is set by [LoadCurves] when the part has no curves of its own.
	StandIn bool `yaml:"-"`
}
