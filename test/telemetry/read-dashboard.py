"""Reads a dashboard by the types that Grafana publishes, and prints each query as [panel, expression]."""
import json, sys
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.models.dashboard import Dashboard, RowPanel

plugins.register_default_plugins()
with open(sys.stdin.readline().strip()) as file:
    dashboard = Dashboard.from_json(json.load(file))
assert dashboard.uid and dashboard.title and dashboard.templating.list_val, "a dashboard has a name and variables"
for panel in dashboard.panels:
    if isinstance(panel, RowPanel):
        continue
    assert panel.type_val == "timeseries" and panel.title and panel.description and panel.grid_pos, panel
    for target in panel.targets:
        print(json.dumps([panel.title, target.expr]))
