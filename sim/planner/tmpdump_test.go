package planner
import ("testing";"os";"fmt";"infera/configs";"infera/sim/accuracy")
func TestTmpDump(t *testing.T){
 out:=os.Getenv("DUMP"); if out==""{t.Skip()}
 l,err:=Open(configs.FS); if err!=nil{t.Fatal(err)}
 f,_:=configs.FS.Open("measured/serving.csv")
 pts,err:=accuracy.ReadCSV(f); if err!=nil{t.Fatal(err)}
 w,_:=os.Create(out)
 for i:=range pts{ s,err:=l.Score(&pts[i]); if err!=nil{continue}
  fmt.Fprintf(w,"%s %s %s %g %g %g %.6g %.6g %.6g\n",pts[i].ID,pts[i].GPU,pts[i].Engine,pts[i].InputLen,pts[i].OutputLen,pts[i].Concurrency,s.TPOT.Predicted,s.TTFT.Predicted,s.TotalPerGPU.Predicted)}
}
