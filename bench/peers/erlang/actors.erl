%% Processes of Erlang, measured as the programs of bench/actors are.
%% usage: erl +S THREADS:THREADS +P 2000000 -noshell -s actors main -extra MEASUREMENT NUMBER...
-module(actors).
-export([main/0, cell/1, nap/1]).

main() ->
  [Form | Numbers] = init:get_plain_arguments(),
  ok = run(Form, [list_to_integer(N) || N <- Numbers]),
  init:stop().

now_us() -> erlang:monotonic_time(microsecond).
rate(N, Us) -> io:format("per_s ~p~n", [N * 1000000 div max(1, Us)]), ok.

resident() ->
  {ok, Text} = file:read_file("/proc/self/status"),
  {match, [Kb]} = re:run(Text, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
  list_to_integer(Kb) * 1024.

%% What gen_server:call does, without its checks: a monitor for each call.
call(To, N) ->
  Ref = erlang:monitor(process, To),
  To ! {self(), Ref, N},
  receive {Ref, Total} -> erlang:demonitor(Ref, [flush]), Total end.

adder(Total) -> receive {From, Ref, N} -> From ! {Ref, Total + N}, adder(Total + N) end.

calls(_To, 0) -> ok;
calls(To, N) -> call(To, 1), calls(To, N - 1).

timed_calls(_To, 0, Took) -> lists:sort(Took);
timed_calls(To, N, Took) ->
  T = now_us(), call(To, 1), timed_calls(To, N - 1, [now_us() - T | Took]).

sink(0, Main) -> Main ! done;
sink(N, Main) -> receive _ -> sink(N - 1, Main) end.

flood(_To, 0) -> ok;
flood(To, N) -> To ! {item, N}, flood(To, N - 1).

cell(N) -> receive {hit, Gate} -> counters:add(Gate, 1, 1), cell(N + 1); stop -> ok end.

nap(0) -> timer:sleep(3600000);
nap(Frames) -> 1 + nap(Frames - 1).

until(Gate, N) ->
  case counters:get(Gate, 1) >= N of true -> ok; false -> erlang:yield(), until(Gate, N) end.

make(0, _Gate, Kept) -> Kept;
make(N, none, Kept) -> make(N - 1, none, [spawn(?MODULE, cell, [0]) | Kept]);
make(N, Gate, Kept) -> P = spawn(?MODULE, cell, [0]), P ! {hit, Gate}, make(N - 1, Gate, [P | Kept]).

rounds(_Form, _N, 0) -> ok;
rounds(Form, N, Rounds) ->
  erlang:garbage_collect(),
  Gate = counters:new(1, []), T = now_us(),
  Kept = make(N, case Form of "only" -> none; _ -> Gate end, []),
  case Form of "only" -> ok; _ -> until(Gate, N) end,
  rate(N, now_us() - T),
  [P ! stop || P <- Kept], timer:sleep(500),
  rounds(Form, N, Rounds - 1).

run("call", [N]) ->
  Adder = spawn(fun() -> adder(0) end), Main = self(),
  spawn(fun() ->
    T = now_us(), calls(Adder, N), rate(N, now_us() - T),
    Took = timed_calls(Adder, N, []),
    io:format("p50_us ~p~np99_us ~p~n", [lists:nth(N div 2, Took), lists:nth(N * 99 div 100, Took)]),
    Main ! done end),
  receive done -> ok end;
run("one", [N]) ->
  Main = self(), Sink = spawn(fun() -> sink(N, Main) end), T = now_us(),
  spawn(fun() -> flood(Sink, N) end), receive done -> rate(N, now_us() - T) end;
run(Form, [N, Rounds]) when Form =:= "only"; Form =:= "idle" -> rounds(Form, N, Rounds);
run("memory", [N]) ->
  Gate = counters:new(1, []), Before = resident(), Kept = make(N, Gate, []), until(Gate, N),
  timer:sleep(300), io:format("bytes ~p~n", [(resident() - Before) / N]),
  true = is_pid(hd(Kept)), ok;
run("parked", [N]) -> parked(N, 0);
run("parked20", [N]) -> parked(N, 20).

parked(N, Frames) ->
  Before = resident(), [spawn(?MODULE, nap, [Frames]) || _ <- lists:seq(1, N)],
  timer:sleep(1000), io:format("bytes ~p~n", [(resident() - Before) / N]), ok.
