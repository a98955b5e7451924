#include "engine/trace.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/str_cat.h"

namespace stoker::engine {
namespace {

constexpr uint64_t kMostText = uint64_t{4} << 30;
constexpr int64_t kMostExperts = 1 << 16, kMostExpertBytes = int64_t{1} << 40, kMostLayers = 1 << 14;
constexpr std::string_view kFirstLine = "stoker-trace 1";
constexpr size_t kBuffered = 1 << 16;

/// One line after the other; what is taken from the front of the current one.
class Lines {
 public:
  Lines(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  bool next() {
    if (text_.empty()) return false;
    const size_t end = std::min(text_.find('\n'), text_.size());
    line_ = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    ++number_;
    return true;
  }
  bool take(std::string_view word) {
    if (!line_.starts_with(word)) return false;
    line_.remove_prefix(word.size());
    return true;
  }
  bool take(int64_t& value, int64_t least, int64_t most) {
    const auto [at, error] = std::from_chars(line_.data(), line_.data() + line_.size(), value);
    if (error != std::errc() || value < least || value > most) return false;
    line_.remove_prefix(static_cast<size_t>(at - line_.data()));
    return true;
  }
  std::string_view rest() const { return line_; }
  bool at_end() const { return line_.empty(); }
  Error wrong(std::string_view wanted) const {
    return Error{ErrorCode::kCorrupt, str_cat(name_, ": line ", number_, " is no ", wanted,
                                              "; is this a trace of `stoker run --trace`, and whole?")};
  }

 private:
  std::string_view text_, line_;
  const std::string& name_;
  int64_t number_ = 0;
};

void append_header(const Trace& trace, std::string& out) {
  out += str_cat(kFirstLine, "\nmodel ", trace.model, "\nexperts ", trace.n_experts, " used ", trace.n_used, "\n");
  for (const Trace::Layer& layer : trace.layers) {
    out += str_cat("layer ", layer.layer, " slot ", layer.slot_bytes, " read ", layer.read_bytes, "\n");
  }
}

void append_call(int64_t call, int64_t n_tokens, std::string& out) {
  out += str_cat("call ", call, " tokens ", n_tokens, "\n");
}

void append_visit(int64_t layer, std::span<const int32_t> routes, int64_t n_used, std::string& out) {
  char digits[16];
  out += str_cat(layer, ":");
  for (size_t i = 0; i < routes.size(); ++i) {
    if (i > 0 && i % static_cast<size_t>(n_used) == 0) out += ',';
    out += ' ';
    out.append(digits, std::to_chars(digits, digits + sizeof digits, routes[i]).ptr);
  }
  out += '\n';
}

Status parse_header(Lines& lines, Trace& trace) {
  if (!lines.next() || lines.rest() != kFirstLine) return lines.wrong(quoted(kFirstLine));
  if (!lines.next() || !lines.take("model ")) return lines.wrong("'model NAME'");
  trace.model = lines.rest();
  if (!lines.next() || !lines.take("experts ") || !lines.take(trace.n_experts, 1, kMostExperts) ||
      !lines.take(" used ") || !lines.take(trace.n_used, 1, trace.n_experts) || !lines.at_end()) {
    return lines.wrong("'experts N used K'");
  }
  return Ok{};
}

Status parse_layer(Lines& lines, Trace& trace) {
  int64_t slot = 0, read = 0, layer = 0;
  const int64_t least = trace.layers.empty() ? 0 : trace.layers.back().layer + 1;
  if (!lines.take(layer, least, kMostLayers) || !lines.take(" slot ") || !lines.take(slot, 1, kMostExpertBytes) ||
      !lines.take(" read ") || !lines.take(read, 1, kMostExpertBytes) || !lines.at_end() || !trace.calls.empty()) {
    return lines.wrong("'layer L slot BYTES read BYTES', layers ascending and before all calls");
  }
  trace.layers.push_back({layer, static_cast<uint64_t>(slot), static_cast<uint64_t>(read)});
  return Ok{};
}

Status parse_call(Lines& lines, Trace& trace) {
  int64_t call = 0, n_tokens = 0;
  const auto number = static_cast<int64_t>(trace.calls.size());
  if (!lines.take(call, number, number) || !lines.take(" tokens ") ||
      !lines.take(n_tokens, 1, model::Runner::kMostRows) || !lines.at_end()) {
    return lines.wrong(str_cat("'call ", number, " tokens N'"));
  }
  trace.calls.push_back({n_tokens, trace.visits.size()});
  return Ok{};
}

/// K experts, all different.
bool parse_row(Lines& lines, Trace& trace) {
  const auto begin = static_cast<std::ptrdiff_t>(trace.routes.size());
  for (int64_t i = 0; i < trace.n_used; ++i) {
    int64_t expert = 0;
    if (!lines.take(" ") || !lines.take(expert, 0, trace.n_experts - 1)) return false;
    const auto id = static_cast<int32_t>(expert);
    if (std::find(trace.routes.begin() + begin, trace.routes.end(), id) != trace.routes.end()) return false;
    trace.routes.push_back(id);
  }
  return true;
}

Status parse_visit(Lines& lines, Trace& trace) {
  const auto wrong = [&] {
    return lines.wrong(str_cat("'L: E E, E E' with ", trace.n_used, " of ", trace.n_experts,
                               " experts per token, tokens of a call, layers ascending"));
  };
  int64_t number = 0;
  if (trace.calls.empty() || !lines.take(number, 0, kMostLayers) || !lines.take(":")) return wrong();
  const auto layer = std::find_if(trace.layers.begin(), trace.layers.end(),
                                  [&](const Trace::Layer& candidate) { return candidate.layer == number; });
  if (layer == trace.layers.end()) return wrong();
  const auto index = static_cast<size_t>(layer - trace.layers.begin());
  if (trace.visits.size() > trace.calls.back().first && trace.visits.back().layer >= index) return wrong();
  trace.visits.push_back({index, trace.routes.size()});
  int64_t n_rows = 0;
  do {
    if (!parse_row(lines, trace) || ++n_rows > trace.calls.back().n_tokens) return wrong();
  } while (lines.take(","));
  return lines.at_end() ? Status(Ok{}) : wrong();
}

}  // namespace

std::span<const int32_t> Trace::routes_of(size_t visit) const {
  const size_t end = visit + 1 < visits.size() ? visits[visit + 1].first : routes.size();
  return std::span(routes).subspan(visits[visit].first, end - visits[visit].first);
}

uint64_t Trace::bytes() const {
  uint64_t sum = 0;
  for (const Layer& layer : layers) sum += layer.slot_bytes * static_cast<uint64_t>(n_experts);
  return sum;
}

uint64_t Trace::cycle_bytes() const {
  return bytes() / static_cast<uint64_t>(n_experts) * static_cast<uint64_t>(n_used);
}

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  Trace trace;
  Lines lines(text, name);
  STOKER_TRY_STATUS(parse_header(lines, trace));
  while (lines.next()) {
    if (lines.take("layer ")) {
      STOKER_TRY_STATUS(parse_layer(lines, trace));
    } else if (lines.take("call ")) {
      STOKER_TRY_STATUS(parse_call(lines, trace));
    } else {
      STOKER_TRY_STATUS(parse_visit(lines, trace));
    }
  }
  if (trace.visits.empty()) return Error{ErrorCode::kCorrupt, str_cat(name, ": the trace holds no routes")};
  return trace;
}

Result<Trace> read_trace(const std::string& path) {
  STOKER_TRY(const std::string text, read_text(path, kMostText));
  return parse_trace(text, path);
}

std::string to_text(const Trace& trace) {
  std::string out;
  append_header(trace, out);
  for (size_t call = 0; call < trace.calls.size(); ++call) {
    append_call(static_cast<int64_t>(call), trace.calls[call].n_tokens, out);
    for (size_t visit = trace.calls[call].first; visit < trace.end_of_call(call); ++visit) {
      append_visit(trace.layers[trace.visits[visit].layer].layer, trace.routes_of(visit), trace.n_used, out);
    }
  }
  return out;
}

Result<TraceWriter> TraceWriter::create(const std::string& path, const Engine& engine) {
  const model::ExpertIndex& index = engine.model().expert_index();
  if (index.layers.empty()) {
    return Error{ErrorCode::kInvalidArgument, str_cat(engine.file().path(), ": has no experts, so there is no trace")};
  }
  Trace trace;
  trace.model = std::filesystem::path(engine.file().path()).filename().string();
  std::replace(trace.model.begin(), trace.model.end(), '\n', ' ');
  trace.n_experts = index.n_experts;
  trace.n_used = index.n_used;
  for (const auto& layer : index.layers)
    trace.layers.push_back({layer.layer, layer.expert_bytes(), layer.file_bytes()});
  STOKER_TRY(OutputFile file, OutputFile::create(path));
  TraceWriter writer(std::move(file));
  for (const Trace::Layer& layer : trace.layers) writer.layers_.push_back(layer.layer);
  writer.n_used_ = trace.n_used;
  append_header(trace, writer.text_);
  return writer;
}

Status TraceWriter::add(const model::Runner& runner) {
  append_call(n_calls_++, runner.n_tokens(), text_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::span<const int32_t> routes = runner.routes(i);
    if (!routes.empty()) append_visit(layers_[i], routes, n_used_, text_);
  }
  return flush(kBuffered);
}

Status TraceWriter::flush(size_t most) {
  if (text_.size() <= most) return Ok{};
  STOKER_TRY_STATUS(file_.write(text_));
  text_.clear();
  return Ok{};
}

Status TraceWriter::commit() {
  STOKER_TRY_STATUS(flush(0));
  return file_.commit();
}

}  // namespace stoker::engine
