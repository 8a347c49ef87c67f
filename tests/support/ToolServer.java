// Runs Kafka's command-line tools, one after the other, in one process: to start Java costs each of them a second.
//
// A request on the standard input is the number of words and the words (the tool's class or source file, and its
// arguments), then what the tool finds on its standard input. The answer is its exit code, and what it wrote on its
// standard output and its standard error. Numbers are 4 bytes, texts have their length before them.

import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.net.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import javax.tools.ToolProvider;
import org.apache.kafka.common.utils.Exit;

public class ToolServer {
    /** Tools keep counts and settings in static fields, so each run loads their classes anew from this jar. */
    static URL toolsJar;
    static Path classes;
    static final Map<String, URL> COMPILED = new HashMap<>();
    static volatile Run current = new Run();

    /** What a tool has written so far, what it wants done at its end, and its exit code after that. */
    static class Run {
        final List<Runnable> hooks = new ArrayList<>();
        final ByteArrayOutputStream output = new ByteArrayOutputStream(), errors = new ByteArrayOutputStream();
        Integer status;

        synchronized void write(boolean isError, byte[] data, int start, int length) {
            if (status == null) {
                (isError ? errors : output).write(data, start, length);
            }
        }

        void end(int code) {
            if (status == null) {
                List.copyOf(hooks).forEach(Runnable::run);
                synchronized (this) {
                    status = code;
                }
            }
        }
    }

    /** Thrown where a process would end, after which nothing counts any more. */
    static class Ended extends Error {
    }

    /** Whoever holds on to it, as some classes do, writes to the run of the moment. */
    static PrintStream stream(boolean isError) {
        return new PrintStream(new OutputStream() {
            @Override
            public void write(int one) {
                write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] data, int start, int length) {
                current.write(isError, data, start, length);
            }
        }, true);
    }

    public static void main(String[] arguments) throws Exception {
        toolsJar = Path.of(arguments[0]).toUri().toURL();
        classes = Path.of(arguments[1]);
        DataInputStream requests = new DataInputStream(System.in);
        DataOutputStream answers = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(stream(false));
        System.setErr(stream(true));
        Exit.Procedure exit = (code, message) -> {
            current.end(code);
            throw new Ended();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, action) -> current.hooks.add(action));
        while (true) {
            int count;
            try {
                count = requests.readInt();
            } catch (EOFException end) {
                System.exit(0);
                return;
            }
            String[] words = new String[count];
            for (int place = 0; place < count; place++) {
                words[place] = new String(requests.readNBytes(requests.readInt()), StandardCharsets.UTF_8);
            }
            Run run = run(words, requests.readNBytes(requests.readInt()));
            answers.writeInt(run.status);
            for (ByteArrayOutputStream text : List.of(run.output, run.errors)) {
                answers.writeInt(text.size());
                text.writeTo(answers);
            }
            answers.flush();
        }
    }

    static Run run(String[] words, byte[] input) throws Exception {
        Run run = current = new Run();
        System.setIn(new ByteArrayInputStream(input));
        Thread thread = new Thread(() -> {
            try {
                invoke(words[0], Arrays.copyOfRange(words, 1, words.length));
                run.end(0);
            } catch (Ended end) {
                run.end(0);  // which has been said before
            } catch (Throwable error) {
                error.printStackTrace();
                run.end(1);
            }
        }, "main");
        thread.start();
        thread.join();
        return run;
    }

    static void invoke(String tool, String[] arguments) throws Throwable {
        boolean isSource = tool.endsWith(".java");
        URL place = isSource ? compiled(tool) : toolsJar;
        String name = isSource ? Path.of(tool).getFileName().toString().replace(".java", "") : tool;
        try (URLClassLoader loader = new URLClassLoader(new URL[] {place, toolsJar})) {
            Thread.currentThread().setContextClassLoader(loader);
            Class.forName(name, true, loader).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }

    static URL compiled(String source) throws Exception {
        if (!COMPILED.containsKey(source)) {
            Path folder = Files.createTempDirectory(classes, "classes");
            String[] words = {"-cp", System.getProperty("java.class.path"), "-d", folder.toString(), source};
            if (ToolProvider.getSystemJavaCompiler().run(null, System.out, System.err, words) != 0) {
                throw new IllegalArgumentException(source + " cannot be compiled");
            }
            COMPILED.put(source, folder.toUri().toURL());
        }
        return COMPILED.get(source);
    }
}
