"""What all panels have in common: the data source, sizes, legends, and that each asks one cluster alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models

SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
CLUSTER: Final = 'job=~"$job"'
BROKER: Final = 'job=~"$job", instance=~"$instance"'
TAG: Final = "headrace"
RATE: Final = "$__rate_interval"

Query = tuple[str, str]
"""An expression of PromQL, and the legend of what it gives."""


def number(
    title: str, expression: str, *, text: str, unit: str = "none", bad_above: float | None = None
) -> stat.Panel:
    """One figure. Green, and red above `bad_above`; without it in no colour that would judge."""
    limits = [models.Threshold(value=None, color="text" if bad_above is None else "green")]
    if bad_above is not None:
        limits.append(models.Threshold(value=bad_above, color="red"))
    return (
        stat.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .height(4)
        .span(3)
        .graph_mode(common_models.BigValueGraphMode.AREA)
        .thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(limits))
        .with_target(_target("A", expression, ""))
    )


def curves(
    title: str,
    queries: Sequence[Query],
    *,
    text: str,
    unit: str = "short",
    width: int = 12,
    stacked: bool = False,
    most: float | None = None,
) -> timeseries.Panel:
    panel = (
        timeseries.Panel()
        .title(title)
        .description(text)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .height(8)
        .span(width)
        .fill_opacity(20 if stacked else 0)
        .show_points(common_models.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(common_models.LegendDisplayMode.TABLE)
            .placement(common_models.LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
            .show_legend(True)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_models.TooltipDisplayMode.MULTI)
            .sort(common_models.SortOrder.DESCENDING)
        )
    )
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    if most is not None:
        panel = panel.max(most)
    for letter, (expression, legend) in zip("ABCDEF", queries, strict=False):
        panel = panel.with_target(_target(letter, expression, legend))
    return panel


def rate(metric: str, where: str, by: str, window: str = RATE) -> str:
    return f"sum by ({by}) (rate({metric}{{{where}}}[{window}]))"


def page(
    name: str, title: str, text: str, variables: Sequence[dashboard.QueryVariable]
) -> dashboard.Dashboard:
    made = (
        dashboard.Dashboard(title)
        .uid(f"headrace-{name}")
        .description(text)
        .tags([TAG])
        .editable()
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .link(
            dashboard.DashboardLink("Headrace")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .include_vars(True)
            .keep_time(True)
            .as_dropdown(False)
        )
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
    )
    for variable in variables:
        made = made.with_variable(variable)
    return made


def variable(name: str, label: str, query: str, *, several: bool = False) -> dashboard.QueryVariable:
    made = (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )
    return made.multi(True).include_all(True).all_value(".*") if several else made


JOB: Final = (
    "job",
    "Cluster",
    'label_values(kafka_server_kafkaserver_brokerstate{job=~".*headrace.*"}, job)',
)
INSTANCE: Final = (
    "instance",
    "Broker",
    'label_values(kafka_server_kafkaserver_brokerstate{job=~"$job"}, instance)',
)
TOPIC: Final = ("topic", "Topic", 'label_values(kafka_log_log_size{job=~"$job"}, topic)')


def _target(letter: str, expression: str, legend: str) -> prometheus.Dataquery:
    return (
        prometheus.Dataquery()
        .datasource(SOURCE)
        .ref_id(letter)
        .expr(expression)
        .legend_format(legend or "__auto")
        .range()
    )
