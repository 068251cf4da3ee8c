"""Loads a snapshot with Python's own pickle and holds it to what torch/cuda/_memory_viz.py relies on."""
import pickle
import sys

with open(sys.argv[1], "rb") as file:
    data = pickle.load(file)

in_use = reserved = events = 0
for segment in data["segments"]:
    end = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == end, (segment, block)
        assert block["state"] in ("active_allocated", "active_pending_free", "inactive"), block
        assert 0 <= block["requested_size"] <= block["size"], block
        end += block["size"]
        if block["state"] == "active_allocated":
            in_use += block["size"]
            assert block["frames"], block
    assert end == segment["address"] + segment["total_size"], segment
    if segment["segment_type"] == "large":
        reserved += segment["total_size"]

held = 0
for trace in data["device_traces"]:
    events += len(trace)
    live = {}
    for event in trace:
        assert max(event["addr"], event["size"], event["time_us"]) < 2**53, event
        for frame in event["frames"]:
            assert set(frame) == {"name", "filename", "line"}, frame
        if event["action"] == "alloc":
            assert event["addr"] not in live, event
            live[event["addr"]] = event["size"]
        elif event["action"] == "free_requested":
            assert live.pop(event["addr"]) == event["size"], event
    held += sum(live.values())
assert held == in_use, (held, in_use)
print(f"{len(data['device_traces'])} devices, {events} events, {in_use} in use, {reserved} reserved")
