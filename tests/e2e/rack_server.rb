# Serves the Rack application of a sample, as Puma would: one request for each connection. No gem is needed.
require "socket"
require "stringio"
require ARGV[0]

app = GuichetWebhooks.new
server = TCPServer.new("127.0.0.1", Integer(ENV["PORT"]))
loop do
  socket = server.accept
  next socket.close unless socket.gets
  headers = {}
  while (line = socket.gets.chomp) != ""
    name, value = line.split(": ", 2)
    headers["HTTP_#{name.upcase.tr("-", "_")}"] = value
  end
  body = socket.read(headers.fetch("HTTP_CONTENT_LENGTH", "0").to_i)
  status, = app.call(headers.merge("rack.input" => StringIO.new(body)))
  socket.write("HTTP/1.1 #{status} \r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
  socket.close
end
