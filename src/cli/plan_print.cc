#include "cli/plan_print.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/memory_limit.h"
#include "base/pool.h"
#include "base/str_cat.h"
#include "cli/format.h"
#include "engine/synth.h"

namespace stoker::cli {
namespace {

using engine::PlanReport;
using engine::PlanSpeed;
using Json = nlohmann::ordered_json;

std::string size(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

/// Whether the model continues texts; otherwise it gives vectors of them.
bool decodes(const PlanText& p) { return p.engine.model().config().causal; }

bool streams(const PlanReport& r) { return r.placement.residency.stream_experts; }

std::string head(const PlanText& p) {
  const model::ModelConfig& config = p.engine.model().config();
  std::string out = str_cat(p.engine.options().path, ": ", config.n_layers, " layers");
  if (const auto index = p.engine.model().expert_index(); !index.layers.empty()) {
    out += str_cat(", ", index.n_experts, " experts in each of ", index.layers.size(), ", ", index.n_used, " a token");
  }
  out += str_cat(", ", format_bytes(p.engine.model().file_bytes()),
                 engine::is_synthetic(p.engine.file()) ? ", random weights" : "", "\n");
  out += str_cat(p.run.parallel, p.run.parallel == 1 ? " sequence of " : " sequences of ", p.run.context,
                 " positions, K and V in ", decodes(p) ? p.kv_type : "f32, of one layer at a time", ", ", p.threads,
                 " threads, ", isa_name(p.engine.model().plan().table->isa), "\n");
  return out;
}

/// "the feed-forward of 28 of 28 layers, ..."
std::string units_of(const PlanReport& r) {
  std::string out;
  const auto add = [&](const PlanReport::Units& units, std::string_view before, std::string_view after) {
    if (units.layers.empty()) return;
    out += str_cat(out.empty() ? "" : ", ", before, units.layers.size(), " of ", units.n_all, after);
  };
  add(r.feed_forward, "the feed-forward of ", " layers");
  add(r.attention, "the attention of ", " layers");
  add(r.output, "", " parts of the output matrix");
  return out;
}

std::string memory_table(const PlanText& p) {
  const PlanReport& r = p.report;
  std::vector<Ledger::Line> lines = r.lines;
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  std::string out =
      r.limit > 0 ? str_cat("\nmemory, of a limit of ", format_bytes(r.limit), "\n") : "\nmemory, without a limit\n";
  for (const Ledger::Line& l : lines) out += line("  %-20s %11s\n", l.name.c_str(), format_bytes(l.bytes).c_str());
  out += line("  %-20s %11s\n", "together", format_bytes(r.bytes).c_str());
  if (r.streamed_bytes == 0) return out + "All weights are in memory.\n";
  std::string what = streams(r) ? "the experts" : "";
  const auto add = [&](std::string_view more) { what += str_cat(what.empty() ? "" : ", and ", more); };
  if (r.n_units > 0) add(str_cat(units_of(r), ", which each pass reads"));
  if (p.engine.model().reads_embedding(r.placement.residency)) add("the embedding, of which each token reads a row");
  const bool inputs = static_cast<bool>(p.engine.model().weights().layer_inputs);
  if (inputs && r.placement.residency.read_embedding) add("inputs of the layers, of which each token reads a row");
  out += str_cat("On disk stay ", format_bytes(r.streamed_bytes), ": ", what, ".\n");
  if (!streams(r)) return out;
  out += line(
      "The cache holds %lld of %lld experts, %.2f times what a token passes through; %.1f %% are found there if all "
      "are\n"
      "chosen as often.\n",
      static_cast<long long>(r.n_slots), static_cast<long long>(r.n_experts), r.token_cycles, 100 * r.hit_rate);
  const int64_t rows = r.placement.max_rows;
  if (rows >= p.run.prompt)
    return out + line("A prompt of %lld tokens is read in one pass, each expert once.\n",
                      static_cast<long long>(p.run.prompt));
  return out + line("A prompt is read %lld tokens at a time, each with a pass through the experts: more do not fit.\n",
                    static_cast<long long>(rows));
}

std::string bytes_table(const PlanText& p) {
  if (!decodes(p)) return "";
  const PlanReport::PerToken& b = p.report.per_token;
  return line(
      "\nbytes a token: %s of dense weights, %s of experts from memory, %s of experts from disk,\n"
      "%s of layers from disk, %s of K and V once the context is full\n",
      size(b.dense).c_str(), size(b.experts_memory).c_str(), size(b.experts_disk).c_str(), size(b.layers_disk).c_str(),
      size(b.kv).c_str());
}

std::string speed_line(const std::string& name, const PlanSpeed& s) {
  const engine::PassTime& t = s.time;
  return line("  %-22s %8.2f t/s  by %-10s  %6.2f s: dense %.2f, experts %.2f, attention %.2f, disk %.2f\n",
              name.c_str(), s.tokens, bound_name(s.bound), t.total, t.dense, t.experts, t.attention, t.disk);
}

std::string speeds(const PlanText& p) {
  const std::string unit = p.run.parallel > 1 ? ", all sequences together" : "";
  const std::string prompt =
      speed_line(str_cat(decodes(p) ? "prompt of " : "text of ", p.run.prompt), p.report.prefill);
  if (!decodes(p)) return str_cat("\npredicted\n", prompt);
  return str_cat("\npredicted", unit, "\n", prompt, speed_line("decode after it", p.report.decode),
                 speed_line(str_cat("decode at ", p.run.context), p.report.decode_full));
}

std::string limits_table(const PlanText& p) {
  std::string out = decodes(p) ? line("\n%12s %7s %12s  %-10s %12s  %s\n", "limit", "hits", "prompt t/s", "bound",
                                      "decode t/s", "bound")
                               : line("\n%12s %7s %12s  %s\n", "limit", "hits", "text t/s", "bound");
  for (const PlanReport& r : p.limits) {
    const std::string hits = r.n_units > 0 ? "layers" : streams(r) ? line("%.0f %%", 100 * r.hit_rate) : "all";
    out += line(decodes(p) ? "%12s %7s %12.1f  %-10s" : "%12s %7s %12.1f  %s", format_bytes(r.limit).c_str(),
                hits.c_str(), r.prefill.tokens, bound_name(r.prefill.bound));
    out += decodes(p) ? line(" %12.2f  %s\n", r.decode.tokens, bound_name(r.decode.bound)) : "\n";
  }
  return out;
}

std::string sources(const PlanText& p) {
  const PlanFigures& f = p.figures;
  return line("\nmemory %.1f GB/s, int8 %.0f GOP/s (%s), matrix products (%s), disk %.2f GB/s (%s).\n",
              f.rates.read / 1e9, f.rates.int8_ops / 1e9, source_name(f.memory), source_name(f.kernels),
              f.rates.disk / 1e9, source_name(f.disk));
}

Json to_json(const PlanSpeed& s) {
  const engine::PassTime& t = s.time;
  return {{"tokens_per_second", s.tokens},
          {"bound", bound_name(s.bound)},
          {"bound_tokens_per_second", s.least_tokens},
          {"seconds",
           {{"total", t.total},
            {"dense", t.dense},
            {"experts", t.experts},
            {"attention", t.attention},
            {"steps", t.steps},
            {"disk", t.disk}}}};
}

Json experts_json(const PlanReport& r) {
  if (!streams(r)) return nullptr;
  return {{"slots", r.n_slots},          {"experts", r.n_experts},         {"budget_bytes", r.placement.expert_budget},
          {"all_bytes", r.expert_bytes}, {"token_cycles", r.token_cycles}, {"hit_rate", r.hit_rate}};
}

Json units_json(const PlanReport& r) {
  const auto of = [](const PlanReport::Units& units) { return Json{{"streamed", units.layers}, {"all", units.n_all}}; };
  return {{"attention", of(r.attention)}, {"feed_forward", of(r.feed_forward)}, {"output", of(r.output)}};
}

Json limits_json(const PlanText& p) {
  Json limits = Json::array();
  for (const PlanReport& r : p.limits) {
    limits.push_back({{"limit_bytes", r.limit},
                      {"slots", streams(r) ? Json(r.n_slots) : Json(nullptr)},
                      {"hit_rate", r.hit_rate},
                      {"prefill_tokens_per_second", r.prefill.tokens},
                      {"prefill_bound", bound_name(r.prefill.bound)},
                      {"decode_tokens_per_second", decodes(p) ? Json(r.decode.tokens) : Json(nullptr)},
                      {"decode_bound", decodes(p) ? Json(bound_name(r.decode.bound)) : Json(nullptr)}});
  }
  return limits;
}

Json rates_json(const PlanFigures& f) {
  const auto kind = [](PlanFigures::Source s) {
    return s == PlanFigures::Source::kNow ? "now" : s == PlanFigures::Source::kKept ? "kept" : "guess";
  };
  return {{"read_bytes_per_second", f.rates.read},   {"steady_read_bytes_per_second", f.rates.steady_read},
          {"int8_ops_per_second", f.rates.int8_ops}, {"f32_ops_per_second", f.rates.float_ops},
          {"disk_bytes_per_second", f.rates.disk},   {"memory_source", kind(f.memory)},
          {"kernels_source", kind(f.kernels)},       {"disk_source", kind(f.disk)}};
}

}  // namespace

std::string plan_text(const PlanText& p) {
  return head(p) + memory_table(p) + bytes_table(p) + speeds(p) + limits_table(p) + sources(p);
}

std::string plan_json(const PlanText& p) {
  const PlanReport& r = p.report;
  Json memory = Json::array();
  for (const Ledger::Line& l : r.lines) memory.push_back({{"name", l.name}, {"bytes", l.bytes}});
  const Json json = {{"model", p.engine.options().path},
                     {"synthetic", engine::is_synthetic(p.engine.file())},
                     {"file_bytes", p.engine.model().file_bytes()},
                     {"limit_bytes", r.limit},
                     {"smallest_limit_bytes", p.limits.front().limit},
                     {"resident_limit_bytes", engine::resident_limit(p.engine, p.run)},
                     {"context", p.run.context},
                     {"parallel", p.run.parallel},
                     {"prompt_tokens", p.run.prompt},
                     {"prompt_rows", r.placement.max_rows},
                     {"kv_type", decodes(p) ? p.kv_type : "f32"},
                     {"threads", p.threads},
                     {"isa", isa_name(p.engine.model().plan().table->isa)},
                     {"memory", memory},
                     {"memory_bytes", r.bytes},
                     {"streamed_bytes", r.streamed_bytes},
                     {"streamed_parts", r.n_units},
                     {"streamed_units", units_json(r)},
                     {"expert_cache", experts_json(r)},
                     {"bytes_per_token",
                      {{"dense", r.per_token.dense},
                       {"experts_memory", r.per_token.experts_memory},
                       {"experts_disk", r.per_token.experts_disk},
                       {"layers_disk", r.per_token.layers_disk},
                       {"kv", r.per_token.kv}}},
                     {"prefill", to_json(r.prefill)},
                     {"decode", decodes(p) ? to_json(r.decode) : Json(nullptr)},
                     {"decode_full_context", decodes(p) ? to_json(r.decode_full) : Json(nullptr)},
                     {"limits", limits_json(p)},
                     {"rates", rates_json(p.figures)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker::cli
