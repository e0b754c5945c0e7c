package planner
import ("testing";"reflect";"math";"fmt";"infera/configs";"infera/sim/layout")
func TestTmpNaN(t *testing.T){
 l,_:=Open(configs.FS)
 base:=question(t,l,"gpt_oss_120B","mi355x","vllm",layout.Layout{TP:2,PP:1,EP:2,AttentionDP:1},1024,1024,32)
 var walk func(v reflect.Value,path string,do func(v reflect.Value,path string))
 walk=func(v reflect.Value,path string,do func(reflect.Value,string)){
  switch v.Kind(){
  case reflect.Struct: for i:=0;i<v.NumField();i++{ if v.Type().Field(i).IsExported(){ walk(v.Field(i),path+"."+v.Type().Field(i).Name,do)} }
  case reflect.Float64, reflect.Int, reflect.Int64: do(v,path)
  }
 }
 for _,val:=range []float64{math.NaN(),math.Inf(1),-1,1e300, 1e12}{
  r:=*base
  walk(reflect.ValueOf(&r).Elem(),"",func(v reflect.Value,path string){
   old:=reflect.New(v.Type()).Elem(); old.Set(v)
   if v.Kind()==reflect.Float64{ v.SetFloat(val) } else { if math.IsNaN(val)||math.IsInf(val,0)||val>1e15{return}; v.SetInt(int64(val)) }
   res:="?"
   func(){ defer func(){ if e:=recover();e!=nil{res=fmt.Sprint("PANIC ",e)}}()
    p,err:=l.Project(&r)
    switch{ case err!=nil: res="err "+err.Error(); case !p.Feasible: res="inf "+p.Reason
    default: res=fmt.Sprintf("ok %v %v %v",p.TTFT.Value,p.TPOT.Value,p.TotalRate.Value)}
   }()
   v.Set(old)
   if len(res)>110{res=res[:110]}
   if res[:3]!="err" || true { fmt.Printf("%v %s: %s\n",val,path,res)}
  })
 }
}
