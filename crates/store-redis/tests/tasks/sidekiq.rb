# What a plain Sidekiq client and Sidekiq's API do. Arguments: the URL and a command. Prints one JSON value.

require "sidekiq"
require "sidekiq/api"
require "json"

Sidekiq.configure_client { |config| config.redis = { url: ARGV[0] } }

case ARGV[1]
when "push"
  item = { "class" => "Hard", "queue" => "testq", "args" => [1, "x", []], "retry" => 3, "backtrace" => 1 }
  puts JSON.generate("jid" => Sidekiq::Client.push(item))
when "look"
  stats = Sidekiq::Stats.new
  work = []
  Sidekiq::Workers.new.each do |process, _thread, work_item|
    payload = work_item["payload"]
    payload = JSON.parse(payload) if payload.is_a?(String)
    work << [process, work_item["queue"], payload["jid"], payload["class"]]
  end
  processes = Sidekiq::ProcessSet.new.map do |process|
    [process.identity, process["busy"], process["concurrency"], process["queues"], process.stopping?]
  end
  retries = Sidekiq::RetrySet.new.map do |job|
    [job.jid, job.item["error_message"], job.item["retry_count"], job.error_backtrace]
  end
  puts JSON.generate(
    "processed" => stats.processed, "failed" => stats.failed, "scheduled" => stats.scheduled_size,
    "queues" => stats.queues, "jids" => Sidekiq::Queue.new("testq").map(&:jid),
    "processes" => processes, "work" => work, "retries" => retries
  )
when "quiet"
  Sidekiq::ProcessSet.new.each(&:quiet!)
  puts "null"
when "stop"
  Sidekiq::ProcessSet.new.each(&:stop!)
  puts "null"
end
