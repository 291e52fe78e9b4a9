"""The document type of `experiment.xml` version 2.1, as far as call path profiles use it."""


def _element(name: str, content: str, *attributes: str) -> str:
    declaration = f"<!ELEMENT {name} {content}>"
    if not attributes:
        return declaration
    return f"{declaration}\n<!ATTLIST {name} {' '.join(attributes)}>"


_ID = "i CDATA #REQUIRED"
_NAME = "n CDATA #REQUIRED"
_KIND = 't (inclusive|exclusive|nil) "nil"'


def _implied(*names: str) -> tuple[str, ...]:
    return tuple(f"{name} CDATA #IMPLIED" for name in names)


_DECLARATIONS = (
    _element("HPCToolkitExperiment", "(Header, (SecCallPathProfile|SecFlatProfile)*)", "version CDATA #REQUIRED"),
    _element("Info", "(NV*)", *_implied("n")),
    _element("NV", "EMPTY", _NAME, *_implied("t"), "v CDATA #REQUIRED"),
    _element("Header", "(Info*)", _NAME),
    _element(
        "SecHeader",
        "(MetricTable?, MetricDBTable?, TraceDBTable?, LoadModuleTable?, FileTable?, ProcedureTable?, Info*)",
    ),
    _element("MetricTable", "(Metric)*"),
    _element(
        "Metric",
        "(MetricFormula*, Info?)",
        _ID,
        _NAME,
        *_implied("es", "em", "ep"),
        'v (raw|final|derived-incr|derived) "raw"',
        _KIND,
        *_implied("partner", "fmt"),
        'show (1|0) "1"',
        'show-percent (1|0) "1"',
    ),
    _element("MetricFormula", "(Info?)", 't (combine|finalize) "finalize"', *_implied("i"), "frm CDATA #REQUIRED"),
    _element("M", "EMPTY", _NAME, "v CDATA #REQUIRED"),
    _element("MetricDBTable", "(MetricDB)*"),
    _element(
        "MetricDB",
        "EMPTY",
        _ID,
        _NAME,
        _KIND,
        *_implied("partner", "db-glob", "db-id", "db-num-metrics", "db-header-sz"),
    ),
    _element("TraceDBTable", "(TraceDB)"),
    _element("TraceDB", "EMPTY", _ID, *_implied("db-glob", "db-min-time", "db-max-time", "db-header-sz")),
    _element("LoadModuleTable", "(LoadModule)*"),
    _element("LoadModule", "(Info?)", _ID, _NAME),
    _element("FileTable", "(File)*"),
    _element("File", "(Info?)", _ID, _NAME),
    _element("ProcedureTable", "(Procedure)*"),
    _element("Procedure", "(Info?)", _ID, _NAME),
    _element("SecCallPathProfile", "(SecHeader, SecCallPathProfileData)", _ID, _NAME),
    _element("SecCallPathProfileData", "(PF|M)*"),
    _element("PF", "(PF|Pr|L|C|S|M)*", *_implied("i", "s"), _NAME, *_implied("lm", "f", "l", "str", "v")),
    _element(
        "Pr",
        "(Pr|L|C|S|M)*",
        *_implied("i", "s"),
        _NAME,
        *_implied("lm", "f", "l"),
        'a (1|0) "0"',
        *_implied("str", "v"),
    ),
    _element("C", "(PF|M)*", *_implied("i", "s", "l", "str", "v")),
    _element("L", "(A|Pr|L|S|C|M)*", *_implied("i", "s", "l", "f", "str", "v")),
    _element("S", "(S|M)*", *_implied("i", "it", "s", "l", "str", "v")),
)

DOCTYPE = "<!DOCTYPE HPCToolkitExperiment [\n" + "\n".join(_DECLARATIONS) + "\n]>\n"
"""The declaration that stands at the top of every `experiment.xml`."""
