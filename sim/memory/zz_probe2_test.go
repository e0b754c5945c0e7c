package memory
import ("testing";"fmt";"time";"infera/models";"infera/configs";"infera/sim/hardware")
func TestAllPresets(t *testing.T){
 c,err:=models.LoadCatalog(configs.FS); if err!=nil{t.Fatal(err)}
 hw,err:=hardware.Load(configs.FS); if err!=nil{t.Fatal(err)}
 g,err:=hw.Lookup("mi355x"); if err!=nil{t.Fatal(err)}
 e:=defaults(t,"sglang","",g); v:=defaults(t,"vllm","",g)
 for _,n:=range c.Names(){ a,err:=c.Lookup(n); if err!=nil{fmt.Println(n,err);continue}
  s:=sizer(t,a); t0:=time.Now(); f,err:=s.Fit(&Request{GPU:g,Layout:plain(8),Engine:e,InputLen:8192,OutputLen:1024}); d:=time.Since(t0)
  h,_:=s.Fit(&Request{GPU:g,Layout:plain(8),Engine:v,InputLen:8192,OutputLen:1024})
  fmt.Printf("%-28s w %7.2f (sum8 %7.1fGB) act %.2f/%.2f pool %.1f/%.1f kv/tok %.0f conc %d/%d OK %v %s %v groups %d %v\n",n,f.Weights.GiB(),f.Weights.GB()*8,f.Activation.GiB(),h.Activation.GiB(),f.Pool.GiB(),h.Pool.GiB(),float64(f.KVBytesPerToken),f.MaxConcurrency,h.MaxConcurrency,f.OK,f.Short,err,len(a.Groups),d)
 }
}
