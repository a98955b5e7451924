#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/cpu_order.h"
#include "base/memory_limit.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/inspect_nodes.h"
#include "cli/options.h"
#include "cli/synth_file.h"
#include "cli/verify.h"
#include "engine/embed.h"
#include "gguf/file.h"
#include "model/forward.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace stoker::cli {
namespace {

struct InspectArgs {
  std::string path;
  std::vector<std::string> overrides;
  bool json = false, tensors = false, plan = false, verify = false;
};

/// Everything that inspection finds, before it is printed one way or the other.
struct Report {
  const gguf::File* file = nullptr;
  std::unique_ptr<model::Model> model;
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::vector<std::string> problems;  ///< Why the file cannot run.
  std::vector<std::string> notes;
  bool vocabulary_only = false;
  int64_t n_verified = 0;
};

std::string shape_of(const gguf::TensorInfo& tensor) {
  std::string out = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) out += str_cat(i ? ", " : "", tensor.shape[i]);
  return out + "]";
}

std::string type_of(const gguf::TensorInfo& tensor) {
  return gguf::type_info(tensor.type_id) ? std::string(gguf::type_name(tensor.type()))
                                         : str_cat("type ", tensor.type_id);
}

struct TypeSum {
  int64_t tensors = 0;
  uint64_t bytes = 0;
};
std::map<std::string, TypeSum> sum_types(const gguf::File& file) {
  std::map<std::string, TypeSum> sums;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    TypeSum& sum = sums[type_of(tensor)];
    ++sum.tensors;
    sum.bytes += tensor.bytes;
  }
  return sums;
}

Report examine(const gguf::File& file, const InspectArgs& args) {
  Report report;
  report.file = &file;
  report.notes = file.notes();
  report.vocabulary_only = file.tensors().empty() && file.find("tokenizer.ggml.model") != nullptr;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (!gguf::type_info(tensor.type_id)) {
      report.problems.push_back(str_cat("tensor ", tensor.name, ": type ", tensor.type_id,
                                        " is not known, possibly another program's own format"));
    }
  }
  auto tokenizer = text::Tokenizer::from_gguf(file);
  if (tokenizer) {
    report.tokenizer = std::move(*tokenizer);
  } else {
    report.problems.push_back(tokenizer.error().message);
  }
  if (report.vocabulary_only) return report;
  model::Overrides overrides;
  for (const std::string& text : args.overrides)
    overrides[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  auto prepared = model::Model::prepare(file, {.overrides = overrides});
  if (!prepared) {
    report.problems.push_back(prepared.error().message);
    return report;
  }
  report.model = std::move(*prepared);
  for (const std::string& name : report.model->unused_tensors())
    report.notes.push_back(str_cat("tensor ", name, " is not used"));
  return report;
}

NodeReport node_report(const Report& report) {
  return NodeReport::of(*report.model, memory_nodes(process_cpus()), usable_cpus());
}

int64_t count_recurrent(const model::ModelConfig& config) {
  int64_t n = 0;
  for (int64_t layer = 0; layer < config.n_layers; ++layer) n += config.has_recurrence(layer);
  return n;
}

nlohmann::json to_json(const Report& report, const InspectArgs& args) {
  const gguf::File& file = *report.file;
  nlohmann::json out{{"version", file.version()},       {"big_endian", file.big_endian()},
                     {"shards", file.shards().size()},  {"n_tensors", file.tensors().size()},
                     {"problems", report.problems},     {"notes", report.notes},
                     {"runs", report.problems.empty()}, {"vocabulary_only", report.vocabulary_only}};
  if (auto arch = file.string("general.architecture"); arch && *arch) out["architecture"] = **arch;
  for (const auto& [name, sum] : sum_types(file)) out["types"][name] = {{"tensors", sum.tensors}, {"bytes", sum.bytes}};
  if (report.tokenizer) {
    out["tokenizer"] = {{"model", report.tokenizer->model_name()},
                        {"pre", report.tokenizer->pre_name()},
                        {"vocab_size", report.tokenizer->vocab_size()},
                        {"bos", report.tokenizer->bos()},
                        {"eos", report.tokenizer->eos()},
                        {"add_bos", report.tokenizer->add_bos()}};
  }
  if (report.model) {
    const model::ModelConfig& c = report.model->config();
    out["config"] = {{"n_layers", c.n_layers},
                     {"dim", c.dim},
                     {"n_vocab", c.n_vocab},
                     {"context_length", c.context_length},
                     {"causal", c.causal},
                     {"n_heads", c.n_heads.values},
                     {"n_kv_heads", c.n_kv_heads.values},
                     {"ff_dim", c.ff_dim.values},
                     {"k_dim", c.k_dim},
                     {"v_dim", c.v_dim},
                     {"latent_dim", c.latent_dim},
                     {"window", c.window}};
    out["weights_bytes"] = report.model->load_memory(1)[0].bytes;
    const model::StateTraits traits = report.model->plan().kv.traits();
    out["kv_bytes_per_position"] = traits.bytes_per_position;
    out["state"] = {
        {"kind", c.latent_dim > 0    ? "latent"
                 : !c.ratios.empty() ? "compressed"
                                     : "heads"},
        {"bytes_per_position", traits.bytes_per_position},
        {"index_bytes_per_position", report.model->plan().kv.bytes_per_position(model::StateKind::kIndexKeys)},
        {"recurrent_layers", count_recurrent(c)},
        {"bytes_per_sequence", traits.bytes_per_sequence},
        {"bytes_per_checkpoint", traits.bytes_per_checkpoint},
        {"truncates", traits.truncates},
        {"forks", traits.forks}};
  }
  if (args.tensors) {
    for (const gguf::TensorInfo& t : file.tensors()) {
      out["tensors"].push_back({{"name", t.name},
                                {"type", type_of(t)},
                                {"shape", t.shape},
                                {"shard", t.shard},
                                {"offset", t.offset},
                                {"bytes", t.bytes}});
    }
  }
  if (args.plan && report.model) {
    out["plan"] = report.model->plan().describe();
    out["memory"] = nodes_json(node_report(report));
  }
  return out;
}

/// Of layers with rows that stand for several positions, and the state beside these.
std::string compressed_text(const Report& report) {
  const std::vector<int64_t>& ratios = report.model->config().ratios;
  const model::StateTraits traits = report.model->plan().kv.traits();
  std::string out = "compressed     ";
  for (const int64_t ratio : std::set<int64_t>(ratios.begin(), ratios.end())) {
    if (ratio == 0) continue;
    out += str_cat("rows of ", ratio, " positions in ", std::count(ratios.begin(), ratios.end(), ratio), " of ",
                   ratios.size(), " layers, ");
  }
  return str_cat(out, format_bytes(static_cast<uint64_t>(traits.bytes_per_sequence)), " per sequence, ",
                 format_bytes(static_cast<uint64_t>(traits.bytes_per_checkpoint)), " per checkpoint\n");
}

std::string to_text(const Report& report, const InspectArgs& args) {
  const gguf::File& file = *report.file;
  std::string out = str_cat(args.path, ": GGUF version ", file.version(), file.big_endian() ? ", big-endian" : "", ", ",
                            file.shards().size(), file.shards().size() == 1 ? " file, " : " files, ",
                            file.tensors().size(), " tensors\n");
  if (auto arch = file.string("general.architecture"); arch && *arch) out += str_cat("architecture   ", **arch, "\n");
  if (auto name = file.string("general.name"); name && *name) out += str_cat("name           ", **name, "\n");
  if (report.model) {
    const model::ModelConfig& c = report.model->config();
    out += str_cat("layers         ", c.n_layers, ", model dimension ", c.dim, ", feed-forward ", c.ff_dim.max(), "\n");
    out += str_cat("attention      ", c.n_heads.max(), " heads, ",
                   c.latent_dim > 0 ? str_cat("for all one latent of ", c.latent_dim, " with ", c.rope_dims,
                                              c.rotates ? " rotated" : " shared")
                                    : str_cat(c.n_kv_heads.max(), " key-value heads of ", c.k_dim),
                   c.any_sliding() || !c.ratios.empty() ? str_cat(", window ", c.window) : std::string(), "\n");
    if (!c.ratios.empty()) out += compressed_text(report);
    if (c.index_top_k > 0) {
      const auto n = std::count(c.index_layers.begin(), c.index_layers.end(), true);
      const int64_t bytes = report.model->plan().kv.bytes_per_position(model::StateKind::kIndexKeys);
      const char* const what = c.ratios.empty() ? " positions" : " rows";
      out += str_cat("indexer        ", c.index_top_k, what, " chosen in ", n, " of ", c.n_layers, " layers by ",
                     c.index_heads, " heads of ", c.index_dim, ", ", format_bytes(static_cast<uint64_t>(bytes * 1024)),
                     " of the key-value memory below\n");
    }
    if (const int64_t n = count_recurrent(c); n > 0) {
      const model::StateTraits traits = report.model->plan().kv.traits();
      out +=
          str_cat("recurrence     ", n, " layers, ", c.n_state_heads, " heads of ", c.state_k_dim, " x ", c.state_v_dim,
                  ", ", format_bytes(static_cast<uint64_t>(traits.bytes_per_sequence)), " per sequence, ",
                  format_bytes(static_cast<uint64_t>(traits.bytes_per_checkpoint)), " per checkpoint\n");
    }
    out += str_cat("context        ", c.context_length, " trained, ",
                   format_bytes(static_cast<uint64_t>(report.model->plan().kv.traits().bytes_per_position * 1024)),
                   " of key-value memory per 1024 positions\n");
    const auto pooling = static_cast<engine::Pooling>(c.pooling);
    if (pooling == engine::Pooling::kRank) {
      out += "gives          scores of documents for a query\n";
    } else if (!c.causal) {
      out += str_cat("gives          vectors of texts, pooled by ", engine::pooling_name(pooling), "\n");
    }
    out += str_cat("weights        ", format_bytes(report.model->load_memory(1)[0].bytes), " in memory, vocabulary ",
                   c.n_vocab, report.model->weights().tied ? ", tied" : "", "\n");
    out += str_cat("kernels        ", isa_name(report.model->plan().table->isa), "\n");
  }
  for (const auto& [name, sum] : sum_types(file))
    out += str_cat("type           ", name, ": ", sum.tensors, " tensors, ", format_bytes(sum.bytes), "\n");
  if (report.tokenizer) {
    out += str_cat("tokenizer      ", report.tokenizer->model_name(), " ", report.tokenizer->pre_name(), ", ",
                   report.tokenizer->vocab_size(), " tokens\n");
  }
  if (args.tensors) {
    for (const gguf::TensorInfo& t : file.tensors())
      out += str_cat("tensor         ", t.name, "  ", type_of(t), "  ", shape_of(t), "  ", t.bytes, " bytes at ",
                     t.offset, "\n");
  }
  if (args.plan && report.model) out += nodes_text(node_report(report)) + report.model->plan().describe();
  if (args.verify) out += str_cat("verified       ", report.n_verified, " tensors\n");
  for (const std::string& note : report.notes) out += str_cat("note           ", note, "\n");
  for (const std::string& problem : report.problems) out += str_cat("cannot run     ", problem, "\n");
  if (report.vocabulary_only) out += "vocabulary only: tokenizes, has no weights\n";
  return out;
}

int run(const InspectArgs& args) {
  for (const std::string& text : args.overrides) {
    if (text.find('=') == std::string::npos || text[0] == '=')
      return usage(str_cat("--override ", quoted(text), ": wanted KEY=VALUE"));
  }
  if (args.verify) {
    if (const auto path = model_file(args.path); !path) return fail(path.error());
  }
  const auto header = open_header(args.path);
  if (!header) return fail(header.error());
  const gguf::File& file = *header->file;
  warn_if_random(file);
  Report report = examine(file, args);
  if (args.verify) {
    auto verified = verify_tensors(file, report.problems);
    if (!verified) return fail(verified.error());
    report.n_verified = *verified;
  }
  const std::string out =
      args.json ? to_json(report, args).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                : to_text(report, args);
  if (!put(out)) return fail_output();
  return report.problems.empty() ? kOk : kFailed;
}

}  // namespace

Command make_inspect(CLI::App& root) {
  auto args = std::make_shared<InspectArgs>();
  CLI::App* app =
      root.add_subcommand("inspect", "What a GGUF file holds, and whether it runs here (exit code 1 when it does not)");
  app->add_option("file", args->path, "GGUF file, or any shard of a split one, or synth:SHAPE[:TYPE]")
      ->required()
      ->type_name("FILE");
  app->add_flag("--json", args->json, "Print JSON");
  app->add_flag("--tensors", args->tensors, "List all tensors");
  app->add_flag("--plan", args->plan,
                "List the steps of a forward pass with the kernels picked, and say what "
                "is placed on which memory node");
  app->add_flag("--verify", args->verify, "Read every block and look for values that cannot be");
  app->add_option("--override", args->overrides, "KEY=VALUE in place of the file's metadata")->type_name("KEY=VALUE");
  return {app, [args] { return run(*args); }};
}

}  // namespace stoker::cli
